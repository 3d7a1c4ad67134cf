"""What one call of ``make slow-scheduler`` does, and on which programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from claimctl.reservation.facts.snapshot import Rules
from claimctl_demo.real_servers.programs import Programs
from labs.differential.assets import programs_of
from tests.support.variables import BadOption, check_gates, gates_of, number_of

RATE, VOLUME = "rate", "volume"


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
        pod_groups, cause = gates_of(environment), environment.get("CAUSE") or RATE
        if cause not in (RATE, VOLUME):
            raise BadOption(f"CAUSE: {cause!r} is neither {RATE} nor {VOLUME}")
        tries = number_of(environment, "TRIES", 50.0)
        if not 1 <= tries <= 100:
            raise BadOption(f"TRIES: {tries:g} is not between 1 and 100")
        binding = environment.get("BINDING") or ""
        programs = programs_of(environment.get("VERSION") or "")
        check_gates(programs, pod_groups=pod_groups)
        return cls(
            programs=programs,
            pod_groups=pod_groups,
            tries=int(tries),
            cause=cause,
            binding=number_of(environment, "BINDING", 0.0) if binding else None,
            keep=environment.get("KEEP") or "",
        )
