"""What one call of ``make slow-scheduler`` does, and on which programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from claimctl.controlplane.programs import Programs
from claimctl.reservation.snapshot import Rules
from tests.differential.assets import programs_of

RATE, VOLUME = "rate", "volume"


class BadOption(Exception):
    """A setting that makes no sense; one line."""


@dataclass(frozen=True, slots=True)
class Options:
    """Times are in seconds."""

    programs: Programs
    pod_groups: bool = False
    tries: int = 50
    """Of each reason."""
    cause: str = RATE
    """Why the scheduler is slow: the rate limit of its client, or a volume that comes late."""
    binding: float | None = None
    """--binding-seconds and --slow-binding-seconds of claimctl; 0 is a release that does not wait
    for pods that may be bound."""
    keep: str = ""
    """A folder for all logs; empty for a temporary one that goes with the run."""

    @property
    def dialect(self) -> str:
        return "podgroup" if self.pod_groups else "hold"

    @property
    def label(self) -> str:
        return f"Kubernetes {self.programs.text}, dialect {self.dialect}"

    @property
    def flags(self) -> tuple[str, ...]:
        """claimctl's."""
        usual = Rules()
        quick, slow = usual.binding_seconds, usual.slow_binding_seconds
        if self.binding is not None:
            quick = slow = self.binding
        return (f"--binding-seconds={quick:g}", f"--slow-binding-seconds={slow:g}")

    @classmethod
    def given(cls, environment: Mapping[str, str] = os.environ) -> Options:
        """From VERSION, GATES, TRIES, CAUSE, BINDING, KEEP and KUBEBUILDER_ASSETS.

        Raises:
            BadOption: one of them is not what it should be.
            CannotStart: the folder does not hold the programs.
        """
        gates, cause = environment.get("GATES") or "0", environment.get("CAUSE") or RATE
        if gates not in ("0", "1"):
            raise BadOption(f"GATES: {gates!r} is neither 0 nor 1")
        if cause not in (RATE, VOLUME):
            raise BadOption(f"CAUSE: {cause!r} is neither {RATE} nor {VOLUME}")
        tries = _number(environment, "TRIES", 50.0)
        if not 1 <= tries <= 100:
            raise BadOption(f"TRIES: {tries:g} is not between 1 and 100")
        binding = environment.get("BINDING") or ""
        programs = programs_of(environment.get("VERSION") or "")
        if gates == "1" and programs.version < (1, 36):
            raise BadOption(f"GATES=1: {programs.text} has no PodGroups for claims; use 1.36")
        return cls(
            programs=programs,
            pod_groups=gates == "1",
            tries=int(tries),
            cause=cause,
            binding=_number(environment, "BINDING", 0.0) if binding else None,
            keep=environment.get("KEEP") or "",
        )


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or ""
    try:
        value = float(text) if text else default
    except ValueError:
        raise BadOption(f"{name}: {text!r} is no number") from None
    if value < 0:
        raise BadOption(f"{name}: {text} is less than 0")
    return value
