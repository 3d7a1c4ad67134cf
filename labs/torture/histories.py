"""Compares the histories of many runs before and after a change of the code.

``--save`` plays schedules of the explorer and all reference runs, and writes a fingerprint of every
revision to a file. ``--compare`` plays the same runs again and shows the first revision of each run
that differs. Texts for people (messages of conditions, notes of events) do not count.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from kube_in_process.real.flags import Parser, number

from labs import frame
from labs.runs import prepare
from labs.torture.explorer import explore
from labs.torture.reference import play, references

SEEDS = 500
SHOWN = 5
"""How many differing runs are shown."""


class BadHistories(Exception):
    """The file was not saved by this command, or names runs that do not exist. One line."""


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    try:
        if options.save is not None:
            return save(options.save, range(options.seed, options.seed + options.seeds))
        return compare(options.compare)
    except (OSError, BadHistories) as error:
        print(f"{options.save or options.compare}: {error}", file=sys.stderr)
        return 2


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("labs histories", __doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--save", type=Path, metavar="FILE", help="write the histories")
    what.add_argument("--compare", type=Path, metavar="FILE", help="play them again and compare")
    parser.add_argument("--seeds", type=number(1), default=SEEDS, help="how many (%(default)s)")
    parser.add_argument("--seed", type=number(), default=0, help="the first of them (%(default)s)")
    return parser.parse_args(arguments)


def save(path: Path, seeds: Iterable[int]) -> int:
    """Write the histories; leaves no partial file."""
    runs = [*(f"SEED={seed}" for seed in seeds), *(reference.name for reference in references())]
    partial = path.with_name(f"{path.name}.partial")
    revisions = 0
    with gzip.open(partial, "wt", encoding="utf-8") as file:
        for name, lines in _play_all(runs):
            revisions += len(lines)
            file.write(json.dumps({"run": name, "revisions": lines}) + "\n")
    partial.rename(path)
    print(f"{len(runs)} runs with {revisions} revisions saved")
    return 0


def compare(path: Path) -> int:
    """Print the differences; returns 1 if there are any."""
    before = _read(path)
    different = 0
    for name, after in _play_all(list(before)):
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
            histories = {run["run"]: run["revisions"] for run in map(json.loads, file)}
    except (gzip.BadGzipFile, EOFError, ValueError, TypeError, KeyError) as error:
        raise BadHistories("is not a file that --save has written") from error
    if not histories:
        raise BadHistories("has no run in it")
    for name in histories:
        if name not in known and not name.startswith("SEED="):
            raise BadHistories(f"there is no run named {name!r} any more")
    return histories


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


def _play_all(runs: list[str]) -> Iterator[tuple[str, list[str]]]:
    with frame.processes(prepare=prepare) as pool:
        yield from zip(runs, pool.map(fingerprints_of, runs, chunksize=8), strict=True)


def fingerprints_of(run: str) -> list[str]:
    """Play a run by its name. A failed run has a history; of a run without an end that is said."""
    if run.startswith("SEED="):
        verdict = explore(int(run.removeprefix("SEED=")), keep=True)
    else:
        reference = next(known for known in references() if known.name == run)
        verdict = play(reference, keep=True)
    return verdict.fingerprints or verdict.texts()
