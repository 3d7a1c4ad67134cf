"""Compares the histories of many runs before and after a change of the code.

``--save`` plays schedules of the explorer and all reference runs, and writes a fingerprint of every
revision to a file. ``--compare`` plays the same runs again and shows the first revision of each run
that differs. Texts for people (messages of conditions, notes of events) do not count.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kube_in_process.virtual import Deadlock, LostError, OutOfTime

from labs.torture.batches import quiet
from labs.torture.explorer import explore
from labs.torture.reference import play, references

SEEDS = 500
SHOWN = 5
"""How many differing runs are shown."""


class BadHistories(Exception):
    """The file was not saved by this command, or names runs that do not exist. One line."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        if options.save is not None:
            return save(options.save, range(options.seed, options.seed + options.seeds))
        return compare(options.compare)
    except (OSError, BadHistories) as error:
        print(f"{options.save or options.compare}: {error}", file=sys.stderr)
        return 2


def _options(arguments: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m labs histories", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--save", type=Path, metavar="FILE", help="write the histories")
    what.add_argument("--compare", type=Path, metavar="FILE", help="play them again and compare")
    parser.add_argument(
        "--seeds", type=_count, default=SEEDS, help="schedules to save (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first of them (%(default)s)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is expected, not {text}")
    return number


def save(path: Path, seeds: Iterable[int]) -> int:
    """Write the histories; leaves no partial file."""
    runs = [*(f"SEED={seed}" for seed in seeds), *(each.name for each in references())]
    partial = path.with_name(f"{path.name}.partial")
    revisions = 0
    with gzip.open(partial, "wt", encoding="utf-8") as file:
        for name, lines in _played(runs):
            revisions += len(lines)
            file.write(json.dumps({"run": name, "revisions": lines}) + "\n")
    partial.rename(path)
    print(f"{len(runs)} runs with {revisions} revisions saved")
    return 0


def compare(path: Path) -> int:
    """Print the differences; returns 1 if there are any."""
    before = _read(path)
    different = 0
    for name, after in _played(list(before)):
        if before[name] == after:
            continue
        different += 1
        if different <= SHOWN:
            print("\n".join(difference(name, before[name], after)))
    print(f"{len(before)} runs compared, {different} different")
    return 1 if different else 0


def _read(path: Path) -> dict[str, list[str]]:
    known = {reference.name for reference in references()}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found = {each["run"]: each["revisions"] for each in map(json.loads, file)}
    except (gzip.BadGzipFile, EOFError, ValueError, TypeError, KeyError) as error:
        raise BadHistories("is not a file that --save has written") from error
    if not found:
        raise BadHistories("has no run in it")
    for name in found:
        if name not in known and not name.startswith("SEED="):
            raise BadHistories(f"there is no run named {name!r} any more")
    return found


def difference(name: str, before: list[str], after: list[str]) -> list[str]:
    """The first revision that differs, with the revisions before it."""
    pairs = enumerate(zip_longest(before, after, fillvalue="(the run is over)"))
    place, (old, new) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    return [
        name,
        *(f"    {line}" for line in before[max(place - 3, 0) : place]),
        f"  - {old}",
        f"  + {new}",
    ]


def _played(runs: list[str]) -> Iterator[tuple[str, list[str]]]:
    context = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=quiet) as pool:
        yield from zip(runs, pool.map(fingerprints_of, runs, chunksize=8), strict=True)


def fingerprints_of(run: str) -> list[str]:
    """Play a run by its name. A failed run has a history; a run without an end has none."""
    try:
        return _fingerprints_of(run)
    except (Deadlock, OutOfTime, LostError) as error:
        return [f"(the run does not end: {type(error).__name__})"]


def _fingerprints_of(run: str) -> list[str]:
    if run.startswith("SEED="):
        return explore(int(run.removeprefix("SEED=")), keep=True).verdict.fingerprints
    reference = next(each for each in references() if each.name == run)
    return play(reference, keep=True).fingerprints


if __name__ == "__main__":
    sys.exit(main())
