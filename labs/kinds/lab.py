"""Plays random schedules of a workload whose kind only a rule describes.

Random rules, statuses that lie, children that stay, pods that vanish, a kind and rights that come
and go: no device is freed that a pod uses, and none without a reason, least while the rule says
nothing. Exit code 1 with the seed and the history of the first schedule with a finding.

With --bugs, bugs are planted one at a time, and the schedules must find each of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from kube_in_process.real.flags import Parser, number

from labs import frame
from labs.findings import RunFindings, counts
from labs.hunting import ended, first_finding, hunt_all, in_process, named
from labs.kinds.bugs import BUGS
from labs.planting import plant

BATCH = 20


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs kinds", __doc__)
    count = "number of schedules (%(default)s)"
    parser.add_argument("--schedules", type=number(1), default=10_000, help=count)
    parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    parser.add_argument("--workers", type=number(1), default=os.cpu_count() or 1)
    parser.add_switch("--bugs", "1 to plant each bug, and find it")
    names = [bug.name for bug in BUGS]
    parser.add_argument("--bug", choices=names, help="plant this bug")
    wanted = parser.parse_args(arguments)
    if wanted.bugs:
        return hunt_all(names, in_process("kinds", f"--schedules={wanted.schedules}", "--bug"))
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
    plant(named(BUGS, name))
    from labs.kinds.playing import play

    frame.quiet()
    return ended(first_finding(map(play, seeds)))
