"""Plays what people met when they first used claimctl, and says how much of it is left."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from labs.first_contact.table import Outcomes, reproductions

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Play the tests of the table; 0 if nothing is left, 1 if something is, 2 for a bad name."""
    parser = argparse.ArgumentParser(prog="python -m labs first-contact", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="play these only [default: all]")
    parser.add_argument("--workers", default="2", help="processes of pytest [default: 2]")
    wanted = parser.parse_args(arguments)
    table = {each.name: each for each in reproductions()}
    if unknown := [name for name in wanted.names if name not in table]:
        print(f"no reproduction is named {unknown[0]!r}; there are: {', '.join(table)}")
        return 2
    played = [table[name] for name in wanted.names] or list(table.values())
    tests = list(dict.fromkeys(test for each in played for test in each.tests))
    outcomes = Outcomes()
    # tests of one distribution alone would be named from its own folder on
    flags = ("-q", "-n", wanted.workers, "-p", "no:cacheprovider", f"--rootdir={ROOT}")
    pytest.main([*flags, *tests], plugins=[outcomes])
    left = outcomes.left(played)
    for each, bad in left:
        print(f"{each.name}: {each.did}", *bad, sep="\n    ")
    print(f"{len(left)} left of {len(played)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
