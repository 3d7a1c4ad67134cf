"""The cells that may be worse with claimctl, each with the reason. README.md has the same reasons.

An exception says by how much each figure may be worse, and nothing else may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from labs.habits.drivers import DescribedDriver
from labs.habits.figures import beyond
from labs.habits.playing import PlayedCell


@dataclass(frozen=True, slots=True)
class NamedException:
    """Cells that may be worse.

    Attributes:
        habits: drivers with one of these habits.
        stories: the columns; all of them if none is named.
        allowed: by figure: by how much it may be worse.
        reason: why.
        only_unknown: whether it is for drivers alone that claimctl does not know by name.
    """

    habits: tuple[str, ...]
    stories: tuple[str, ...]
    allowed: Mapping[str, float]
    reason: str
    only_unknown: bool = False

    def covers(self, driver: DescribedDriver, story: str) -> bool:
        wanted = not self.stories or story in self.stories
        has = any(each.name in self.habits for each in driver.habits)
        return wanted and has and not (self.only_unknown and driver.is_known)


RETRY = 95.0
"""Seconds until a kubelet has tried again, and the pod runs."""
VANISHES = {"lost": 1.0, "in_use": 3.0}
EXCEPTIONS = (
    NamedException(
        ("wants-one-pod", "reads-the-first-reference"),
        (),
        {"refused": 1.0, "waited": RETRY},
        "claimctl finds out by a refusal that a driver wants the list for one pod, if it does not "
        "know the driver by its name. That one pod waits until its kubelet tries again, for 60 to "
        "90 s.",
        only_unknown=True,
    ),
    NamedException(
        ("wants-one-pod", "remembers-aborted-prepares"),
        ("retry of a Job",),
        {"lost": 1.0},
        "Beside a driver that wants the list for one pod, or seems to, no hold stands while a pod "
        "runs. If the pod ends by itself, kube-controller-manager deallocates at once.",
    ),
    NamedException(
        ("wants-one-pod", "remembers-aborted-prepares"),
        ("force deletion",),
        VANISHES,
        "Beside such a driver, kube-controller-manager also deallocates at once if the pod "
        "vanishes, although its devices are still prepared.",
    ),
    NamedException(
        ("hides-used-devices",),
        (),
        {"lost": 1.0, "in_use": 1.0},
        "A device that its driver hides while it is in use looks like one that is gone. claimctl "
        "has to know such a driver by its name (`claimctl/reservation/kinds/drivers.yaml`).",
        only_unknown=True,
    ),
    NamedException(
        ("fewer-devices", "renames-devices", "taints-no-schedule", "taints-no-execute"),
        ("force deletion",),
        {"in_use": 1.0},
        "A device that is gone or broken is held no more, so nothing guards it when its pod "
        "vanishes.",
    ),
    NamedException(
        ("taints-no-execute",),
        ("restart of the kubelet",),
        {"lost": 1.0},
        "A claim whose device has evicted a pod is held again when it has another device, and not "
        "when the taint goes.",
    ),
    NamedException(
        ("away",),
        ("scale to 0 and 1",),
        {"refused": 1.0, "waited": RETRY},
        "A held device stays allocated while its driver is away, so a pod comes to its node and is "
        "refused there. A claim that is not held waits for the scheduler, which looks again at "
        "once.",
    ),
    NamedException(
        ("fails-to-unprepare",),
        ("force deletion",),
        {"in_use": 1.0},
        "Nothing in the cluster says that a driver fails to unprepare the devices of a pod that "
        "vanished.",
    ),
)


def covering(played: PlayedCell) -> Iterator[NamedException]:
    """The exceptions that are for a cell."""
    cell = played.cell
    return (each for each in EXCEPTIONS if each.covers(cell.driver, cell.story))


def failures(played: PlayedCell) -> dict[str, float]:
    """The figures of a cell that are worse with claimctl and that no exception names."""
    allowed: dict[str, float] = {}
    for each in covering(played):
        for name, by in each.allowed.items():
            allowed[name] = max(allowed.get(name, 0.0), by)
    return beyond(played.worse, allowed)


def not_needed(cells: Iterable[PlayedCell]) -> list[NamedException]:
    """The exceptions without which no cell would fail."""
    needed = {
        id(each)
        for played in cells
        for each in covering(played)
        if each.allowed.keys() & played.worse.keys()
    }
    return [each for each in EXCEPTIONS if id(each) not in needed]
