"""``python -m claimctl``: the same as ``claimctl``, where scripts are not on the PATH."""

import sys

from claimctl.cli.main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
