"""``python -m claimctl``: the same as ``claimctl``, where scripts are not on the PATH."""

import sys

from claimctl.cli.entry import ended_by_interrupts

if __name__ == "__main__":
    with ended_by_interrupts():
        from claimctl.cli.main import run
    sys.exit(run(sys.argv[1:]))
