"""The options of ``make switching``: the programs, the size of the cluster, and the order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from claimctl_demo.real_servers.programs import Programs
from labs.differential.assets import programs_of
from tests.support.variables import BadOption, check_gates, number_of

RUNBOOK, NAIVE = "runbook", "naive"


@dataclass(frozen=True, slots=True)
class Options:
    """``order`` is the runbook's, or naive: every gate goes off and nothing is prepared."""

    programs: Programs
    claims: int = 40
    pods: int = 20
    """The greatest number of pods of each claim."""
    order: str = RUNBOOK
    seed: int = 0
    """The seed of the user actions."""
    keep: str = ""
    """A folder for all logs; "" for a temporary one that is deleted after the run."""

    @classmethod
    def given(cls, environment: Mapping[str, str] = os.environ) -> Options:
        """Read VERSION, CLAIMS, PODS, ORDER, SEED, KEEP and KUBEBUILDER_ASSETS.

        Raises:
            BadOption: one of them is invalid.
            CannotStart: the folder does not have the programs.
        """
        order = environment.get("ORDER") or RUNBOOK
        if order not in (RUNBOOK, NAIVE):
            raise BadOption(f"ORDER: {order!r} is neither {RUNBOOK} nor {NAIVE}")
        claims = number_of(environment, "CLAIMS", 40.0, least=1.0)
        pods = number_of(environment, "PODS", 20.0, least=2.0)
        if pods > 250:
            raise BadOption(f"PODS: {pods:g} is more than 250, and a claim has 256 places")
        programs = programs_of(environment.get("VERSION") or "")
        check_gates(programs, pod_groups=True)
        return cls(
            programs=programs,
            claims=int(claims),
            pods=int(pods),
            order=order,
            seed=int(number_of(environment, "SEED", 0.0, least=0.0)),
            keep=environment.get("KEEP") or "",
        )
