"""One flag for how long claimctl waits for other components, and hidden flags for each wait."""

from __future__ import annotations

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
        "controller and the other commands the same value.",
    ),
]


def _wait(flag: str, help_: str) -> Any:
    return Annotated[float | None, duration_option(flag, help_, most=3600, hidden=True)]


SettleOption = _wait(
    "--settle-seconds", "Time to wait after the fence; must exceed the lag of schedulers' caches."
)
BindingOption = _wait(
    "--binding-seconds", "Time in which a scheduler binds a pod after it has read the claim."
)
SlowBindingOption = _wait(
    "--slow-binding-seconds",
    "The same for pods with volumes, of gangs, and of schedulers that are not known.",
)
DeadReferenceOption = _wait(
    "--dead-reference-seconds",
    "Time that kube-controller-manager has to remove a dead reference; then claimctl removes it.",
)
GraceOption = Annotated[
    float,
    duration_option(
        "--force-deleted-pod-grace-seconds",
        "How long a vanished pod may still be running, for claims without a ClaimReservation. "
        "With less time such a pod may lose its device.",
        most=86400,
        hidden=True,
    ),
]


def waits(timing: Timing, *given: float | None) -> dict[str, float]:
    """The waits of the flags: one that is given counts, whatever the timing is.

    Args:
        given: seconds, in the order of ``WAITS`` from the first on; None: the flag is not given.
    """
    factor = 3 if timing is Timing.SLOW else 1
    return {
        name: factor * WAITS[name] if value is None else value
        for name, value in zip(WAITS, given, strict=False)
    }
