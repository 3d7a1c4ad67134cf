"""Plays random schedules of a workload whose kind only a rule describes.

Random rules, statuses that lie, children that stay, pods that vanish, a kind and rights that come
and go: no device is freed that a pod uses, and none without a reason, least while the rule says
nothing. Exit code 1 with the seed and the history of the first schedule with a finding.

With --bugs, bugs are planted one at a time, and the schedules must find each of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from kube_in_process.real.flags import Parser, number

from labs import frame
from labs.kinds.bugs import BUGS
from labs.torture.findings import RunFindings, counts
from labs.torture.planting import plant

BATCH = 20


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs kinds", __doc__)
    count = "number of schedules (%(default)s)"
    parser.add_argument("--schedules", type=number(1), default=10_000, help=count)
    parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    parser.add_argument("--workers", type=number(1), default=os.cpu_count() or 1)
    parser.add_switch("--bugs", "1 to plant each bug, and find it")
    parser.add_argument("--bug", choices=[bug.name for bug in BUGS], help="plant this bug")
    wanted = parser.parse_args(arguments)
    if wanted.bugs:
        return _hunt_all(wanted.schedules)
    seeds = range(wanted.seed, wanted.seed + wanted.schedules)
    if wanted.bug is not None:
        return _hunt(wanted.bug, seeds)
    bad = list(_play(seeds, wanted.workers))
    lines = [("schedules", f"{wanted.schedules} from seed {wanted.seed}"), *counts(bad)]
    print(frame.figures(lines))
    for played in bad[:1]:
        print(played.shown())
    return 1 if bad else 0


def _play(seeds: range, workers: int) -> Iterator[RunFindings]:
    """Play on several cores; those with a finding, which are also printed at once."""
    from labs.kinds.playing import play_all
    from labs.torture.batches import prepare

    rest = iter(seeds)
    with frame.processes(workers, prepare) as pool:
        for found in pool.map(play_all, iter(lambda: list(islice(rest, BATCH)), [])):
            for played in found:
                frame.say(f"{played.name}: {'; '.join(played.texts())[:300]}")
            yield from found


def _hunt(name: str, seeds: range) -> int:
    """Plant a bug in this process; 0 if a schedule finds it."""
    plant(next(bug for bug in BUGS if bug.name == name))
    from labs.kinds.playing import play

    frame.quiet()
    for number_, played in enumerate(map(play, seeds), 1):
        if not played.good:
            print(f"{number_} schedules: {played.texts()[0][:160]}")
            return 0
    print("-")
    return 1


def _hunt_all(schedules: int) -> int:
    missed = 0
    for bug in BUGS:
        flags = ("--schedules", str(schedules), "--bug", bug.name)
        command = (sys.executable, "-m", "labs", "kinds", *flags)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        missed += done.returncode != 0
        last = (done.stdout or done.stderr).strip().splitlines()[-1:]
        print("caught" if not done.returncode else "MISSED", bug.name, *last, flush=True)
    return 1 if missed else 0
