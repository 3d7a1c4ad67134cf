"""The pages about DRA drivers and their habits, from the data that claimctl acts on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from claimctl.reservation.kinds.drivers import DriverHabits, known_drivers, known_habits
from generate.reference import FOLDER, page, table

SOURCE = "claimctl/reservation/kinds/drivers.yaml and habits.yaml"


def rendered() -> dict[Path, str]:
    """The text of each page, by its path in the repository."""
    return {Path("docs/drivers.md"): _drivers(), FOLDER / "driver-habits.md": _habits()}


def _drivers() -> str:
    parts = [
        "A hold asks of a driver that it unprepares a claim and prepares it again under the same "
        "UID, also beside the entry of a workload in the claim's list. Try yours:",
        "    claimctl doctor driver gpu.example.com -n default",
        "It takes a free device of each node for a minute, and prints a line a node: what it has "
        "seen, [habits](reference/driver-habits.md) by name, and what claimctl does about them. "
        "Bug reports need `-o yaml`. The ClusterRole `claimctl-driver-check` has the rights. The "
        "pods pass the PodSecurity level `restricted` and have limits. All that it makes goes when "
        "it ends, or a minute after it was killed; what Kubernetes cannot remove, the next check "
        "does.",
        "Drivers that were *seen* beside real kubelets, or only *read*:",
        table(("driver", "version", "found", "habits"), _rows()),
        "For another driver that wants one pod: `claimctl controller --one-pod-driver NAME`. With "
        "one that refuses a second pod, Deployments need `strategy: Recreate`.",
    ]
    return page("Drivers", SOURCE, *parts)


def _rows() -> Iterator[tuple[str, ...]]:
    for driver in known_drivers().values():
        yield (
            f"`{driver.driver}` ({driver.name})",
            driver.versions,
            f"*{driver.how}*: {driver.observed}",
            _linked(driver),
        )


def _linked(driver: DriverHabits) -> str:
    return ", ".join(driver.habits) or "none"


def _habits() -> str:
    rows = (
        (
            f"`{name}`",
            habit.does,
            habit.claimctl,
            "; ".join(filter(None, (habit.always, _if_unknown(habit.unless_known)))),
            habit.needs or "the check",
        )
        for name, habit in known_habits().items()
    )
    return page(
        "Habits of DRA drivers",
        SOURCE,
        "`claimctl doctor driver` names what it sees of these. What needs more than a check, such "
        "as a reboot, it lists as not tried.",
        table(
            ("habit", "what the driver does", "what claimctl does", "what to do", "seen by"), rows
        ),
    )


def _if_unknown(task: str) -> str:
    return f"if claimctl does not know the driver: {task.replace('{driver}', 'NAME')}" * bool(task)
