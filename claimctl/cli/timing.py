"""One flag for how long claimctl waits for other components, and hidden flags for each wait.

A wait that ``--timing`` scales is in ``WAITS``, and is a field of the same name in the flags of the
commands that have it: ``Waits`` has those of all, ``ControllerWaits`` and ``WatchWaits`` add one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from claimctl.cli.durations import duration_option


class Timing(StrEnum):
    """How far the scheduler and kube-controller-manager may be behind the API server."""

    NORMAL = "normal"
    SLOW = "slow"


WAITS = {
    "settle_seconds": 5.0,
    "binding_seconds": 60.0,
    "slow_binding_seconds": 600.0,
    "dead_reference_seconds": 10.0,
}
"""The waits in seconds with ``normal`` timing, by the names of the controller's settings."""

TimingOption = Annotated[
    Timing,
    typer.Option(
        "--timing",
        help="How long to wait for other components before devices are freed. slow: three times "
        "as long, for a scheduler that is often more than 5 s behind the API server. Give the "
        "controller and the other commands the same value. Each wait has a flag of its own, which "
        "is left out here: --settle-seconds (5), --binding-seconds (60), --slow-binding-seconds "
        "(600) and, of the controller, --dead-reference-seconds (10).",
    ),
]


def _wait(flag: str, help_: str, most: float = 3600) -> Any:
    return duration_option(flag, help_, most=most, hidden=True)


_SETTLE = _wait(
    "--settle-seconds", "Time to wait after the fence; must exceed the lag of schedulers' caches."
)
_BINDING = _wait(
    "--binding-seconds", "Time in which a scheduler binds a pod after it has read the claim."
)
_SLOW_BINDING = _wait(
    "--slow-binding-seconds",
    "The same for pods with volumes, of gangs, and of schedulers that are not known.",
)
_DEAD_REFERENCE = _wait(
    "--dead-reference-seconds",
    "Time that kube-controller-manager has to remove a dead reference; then claimctl removes it.",
)
_GRACE = _wait(
    "--force-deleted-pod-grace-seconds",
    "How long a vanished pod may still be running, for claims without a ClaimReservation. With "
    "less time such a pod may lose its device. [default: as with a ClaimReservation]",
    most=86400,
)


@dataclass(frozen=True, slots=True)
class Waits:
    """The flags of the waits. One that is given counts, whatever ``timing`` is."""

    timing: TimingOption = Timing.NORMAL
    settle_seconds: Annotated[float | None, _SETTLE] = None
    binding_seconds: Annotated[float | None, _BINDING] = None
    slow_binding_seconds: Annotated[float | None, _SLOW_BINDING] = None

    @property
    def seconds(self) -> dict[str, float]:
        """The waits that the command has, by the names of the controller's settings."""
        factor = 3 if self.timing is Timing.SLOW else 1
        given = {name: getattr(self, name) for name in WAITS if hasattr(self, name)}
        return {
            name: factor * WAITS[name] if value is None else value for name, value in given.items()
        }


@dataclass(frozen=True, slots=True)
class ControllerWaits(Waits):
    """The flags of ``claimctl controller``."""

    dead_reference_seconds: Annotated[float | None, _DEAD_REFERENCE] = None


CONTROLLER_WAITS = ControllerWaits()


@dataclass(frozen=True, slots=True)
class WatchWaits(Waits):
    """The flags of a command that may have to run a controller of its own."""

    grace_seconds: Annotated[float | None, _GRACE] = None


WATCH_WAITS = WatchWaits()
