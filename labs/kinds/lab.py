"""Plays random schedules of a workload whose kind only a rule describes.

Random rules, statuses that lie, children that stay, pods that vanish, a kind and rights that come
and go: no device is freed that a pod uses, and none without a reason, least while the rule says
nothing. Exit code 1 with the seed and the history of the first schedule with a finding.

With --bugs, bugs are planted one at a time, and the schedules must find each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.real.flags import Parser

from labs.hunting import ended, first_finding, hunt_all, in_process, named
from labs.kinds.bugs import BUGS
from labs.planting import plant
from labs.runs import add_seeds, prepare, report, seeds, spread


def main(arguments: Sequence[str]) -> int:
    names = [bug.name for bug in BUGS]
    parser = Parser("labs kinds", __doc__)
    add_seeds(parser, 10_000, "--schedules")
    parser.add_switch("--bugs", "1 to plant each bug, and find it")
    parser.add_argument("--bug", choices=names, help="plant this bug")
    wanted = parser.parse_args(arguments)
    if wanted.bugs:
        return hunt_all(names, in_process("kinds", f"--schedules={wanted.count}", "--bug"))
    if wanted.bug is not None:
        plant(named(BUGS, wanted.bug))
    from labs.kinds.playing import play

    if wanted.bug is not None:
        prepare()
        return ended(first_finding(map(play, seeds(wanted))))
    tally = spread(play, seeds(wanted), wanted.workers)
    return report(tally, ("schedules", f"{tally.runs} from seed {wanted.seed}"))
