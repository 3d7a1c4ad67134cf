"""The options of ``make torture-real``: its time budget, its programs and more."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from claimctl_demo.real_servers.programs import Programs
from labs.differential.assets import programs_of
from tests.support.variables import check_gates, gates_of, number_of


@dataclass(frozen=True, slots=True)
class Options:
    """``seconds`` of real time for waves of schedules; ``seed`` is the seed of the first one."""

    programs: Programs
    pod_groups: bool = False
    seconds: float = 300.0
    seed: int = 0
    namespaces: int = 6
    """Number of schedules that are played at once."""
    keep: str = ""
    """A folder for all logs; "" for a temporary one that is deleted after the run."""
    tell: bool = False
    """Whether to print the history of every schedule, also without a finding."""
    bug: str = ""
    """The bug to plant in claimctl (labs/torture/mutants.py); "" for none."""

    @property
    def label(self) -> str:
        gates = " with PodGroups" if self.pod_groups else ""
        return f"Kubernetes {self.programs.text}{gates}"

    @classmethod
    def given(cls, environment: Mapping[str, str] = os.environ) -> Options:
        """Read VERSION, GATES, BUDGET, SEED, NAMESPACES, KEEP, TELL, BUG and KUBEBUILDER_ASSETS.

        Raises:
            BadOption: one of them is invalid.
            CannotStart: the folder does not have the programs.
        """
        pod_groups = gates_of(environment)
        numbers = {
            "seconds": number_of(environment, "BUDGET", 300.0, least=1.0),
            "seed": number_of(environment, "SEED", 0.0, least=0.0),
            "namespaces": number_of(environment, "NAMESPACES", 6.0, least=1.0),
        }
        programs = programs_of(environment.get("VERSION") or "")
        check_gates(programs, pod_groups=pod_groups)
        return cls(
            programs=programs,
            pod_groups=pod_groups,
            seconds=numbers["seconds"],
            seed=int(numbers["seed"]),
            namespaces=int(numbers["namespaces"]),
            tell=bool(environment.get("TELL")),
            keep=environment.get("KEEP") or "",
            bug=environment.get("BUG") or "",
        )
