"""``python -m labs.torture_real.planted BUG controller ...``: claimctl with a planted bug."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from labs.hunting import named
from labs.planting import plant
from labs.torture.mutants import MUTANTS


def main(arguments: Sequence[str]) -> int:
    bug, *rest = arguments
    plant(named(MUTANTS, bug))
    from claimctl.cli.main import run

    return run(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
