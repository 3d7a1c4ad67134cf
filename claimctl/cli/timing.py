"""One flag for how long claimctl waits for other components, and hidden flags for each wait."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from claimctl.cli.durations import duration_option


class Timing(StrEnum):
    """How far the scheduler and kube-controller-manager may be behind the API server."""

    NORMAL = "normal"
    SLOW = "slow"


WAITS: Mapping[Timing, Mapping[str, float]] = {
    Timing.NORMAL: {
        "settle_seconds": 5.0,
        "binding_seconds": 60.0,
        "slow_binding_seconds": 600.0,
        "dead_reference_seconds": 10.0,
    },
    Timing.SLOW: {
        "settle_seconds": 15.0,
        "binding_seconds": 180.0,
        "slow_binding_seconds": 1800.0,
        "dead_reference_seconds": 30.0,
    },
}
"""The waits in seconds, by the names of the controller's settings."""

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


def waits(timing: Timing, **given: float | None) -> dict[str, float]:
    """The waits of the flags: one that is given counts, whatever the profile says.

    Args:
        given: the waits that the caller has flags for, in seconds; None: its flag is not given.
    """
    profile = WAITS[timing]
    return {name: profile[name] if value is None else value for name, value in given.items()}
