"""Plays drivers with habits through the lives of workloads, with claimctl and without it.

Prints one line for each cell: a driver with its habits, and what happens to the workload that uses
its device. No cell may be worse with claimctl than without it, but those that README.md names.
Exit code 1 if one is.

With --driver, a file describes the driver:

    name: dra.example.com
    habits:
      - hides-used-devices
      - habit: slow
        prepare_seconds: 30

With --bugs, rules of claimctl are taken out one at a time, and a cell of each must fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube_in_process.habits.registry import HABITS
from kube_in_process.real.flags import Parser

from labs import frame
from labs.habits.drivers import BadDescription, DescribedDriver, drivers_of_the_matrix, read
from labs.habits.planted import TAKEN_OUT, TakenOut
from labs.hunting import ended, hunt_all, in_process
from labs.planting import plant
from labs.runs import add_workers


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs habits", __doc__)
    parser.add_argument("--habit", choices=list(HABITS), help="play drivers with this habit alone")
    parser.add_argument("--driver", metavar="FILE", help="play the driver that this file describes")
    add_workers(parser)
    parser.add_switch("--bugs", "1 to take each rule out, and find it")
    rules = {rule.name: rule for rule in TAKEN_OUT}
    parser.add_argument("--bug", choices=rules, help="take this rule out")
    wanted = parser.parse_args(arguments)
    if wanted.bug is not None:
        return _find(rules[wanted.bug])
    if wanted.bugs:
        names = [name for name, rule in rules.items() if wanted.habit in (None, rule.habit)]
        return hunt_all(names, in_process("habits", "--bug"), wanted.workers)
    drivers = list(_chosen(wanted.habit))
    if wanted.driver is not None:
        try:
            drivers = [read(wanted.driver)]
        except BadDescription as error:
            parser.error(f"--driver: {error}")
    whole = wanted.habit is None and wanted.driver is None
    return _play(drivers, wanted.workers, whole=whole)


def _chosen(habit: str | None) -> Iterator[DescribedDriver]:
    for driver in drivers_of_the_matrix():
        if habit in (None, driver.habits[0].name):
            yield driver


def _play(drivers: Sequence[DescribedDriver], workers: int, *, whole: bool) -> int:
    """Play all cells of some drivers, and print them."""
    from labs.habits.exceptions import failures, not_needed
    from labs.habits.playing import cells, play
    from labs.habits.table import shown, summary
    from labs.runs import prepare

    with frame.processes(workers, prepare) as pool:
        played = list(pool.map(play, cells(drivers)))
    print(shown(played))
    print(summary(played))
    rest = not_needed(played) if whole else []
    for each in rest:
        print(f"not needed any more: {each.reason}")
    return 1 if rest or any(map(failures, played)) else 0


def _find(rule: TakenOut) -> int:
    """Take a rule out in this process; 0 if its cell fails then."""
    plant(rule.mutant)
    from labs.habits.exceptions import failures
    from labs.habits.playing import HabitCell, play

    frame.quiet()
    driver = next(each for each in _chosen(rule.habit) if each.is_known is rule.known)
    found = failures(play(HabitCell(driver, rule.story)))
    return ended(", ".join(f"{name} by {by:g}" for name, by in found.items()))
