"""``python -m tests.torture_real.planted BUG controller ...``: claimctl with a planted bug."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.mutants import MUTANTS
from tests.torture.planting import plant


def main(arguments: Sequence[str]) -> int:
    bug, *rest = arguments
    plant(next(each for each in MUTANTS if each.name == bug))
    from claimctl.cli.main import run

    return run(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
