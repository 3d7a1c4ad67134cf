"""What one call of ``make torture-real`` may take, and which programs it runs on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from claimctl.controlplane.programs import Programs
from tests.differential.assets import programs_of


class BadOption(Exception):
    """A setting that makes no sense; one line."""


@dataclass(frozen=True, slots=True)
class Options:
    """``seconds`` of real time for waves of schedules; ``seed`` is that of the first schedule."""

    programs: Programs
    pod_groups: bool = False
    seconds: float = 300.0
    seed: int = 0
    namespaces: int = 6
    """Schedules that are played side by side."""
    keep: str = ""
    """A folder for all logs; empty for a temporary one that goes with the run."""
    tell: bool = False
    """Print the history of every schedule, not only where something was found."""
    bug: str = ""
    """The name of a bug to plant in claimctl (tests/torture/mutants.py)."""

    @property
    def label(self) -> str:
        gates = " with PodGroups" if self.pod_groups else ""
        return f"Kubernetes {self.programs.text}{gates}"

    @classmethod
    def given(cls, environment: Mapping[str, str] = os.environ) -> Options:
        """From VERSION, GATES, BUDGET, SEED, NAMESPACES, KEEP, TELL, BUG and KUBEBUILDER_ASSETS.

        Raises:
            BadOption: one of them is not what it should be.
            CannotStart: the folder does not hold the programs.
        """
        gates = environment.get("GATES") or "0"
        if gates not in ("0", "1"):
            raise BadOption(f"GATES: {gates!r} is neither 0 nor 1")
        numbers = {
            "seconds": _number(environment, "BUDGET", 300.0, least=1.0),
            "seed": _number(environment, "SEED", 0.0, least=0.0),
            "namespaces": _number(environment, "NAMESPACES", 6.0, least=1.0),
        }
        programs = programs_of(environment.get("VERSION") or "")
        if gates == "1" and programs.version < (1, 36):
            raise BadOption(f"GATES=1: {programs.text} has no PodGroups for claims; use 1.36")
        return cls(
            programs=programs,
            pod_groups=gates == "1",
            seconds=numbers["seconds"],
            seed=int(numbers["seed"]),
            namespaces=int(numbers["namespaces"]),
            tell=bool(environment.get("TELL")),
            keep=environment.get("KEEP") or "",
            bug=environment.get("BUG") or "",
        )


def _number(environment: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    text = environment.get(name) or ""
    try:
        value = float(text) if text else default
    except ValueError:
        raise BadOption(f"{name}: {text!r} is no number") from None
    if value < least:
        raise BadOption(f"{name}: {text} is less than {least:g}")
    return value
