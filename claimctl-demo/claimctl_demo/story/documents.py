"""The documents of ``claimctl demo``."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.documents import Document, Names, Part, says
from claimctl_witness.witness import Violation


class DemoStep(Part, frozen=True, omit_defaults=True):
    name: str
    ok: bool
    dialect: str
    version: str
    pods: Annotated[int | None, says("pods that used the claim at the end of the step")]
    references: Annotated[int | None, says("entries of the claim's list then")]
    writes: Annotated[int | None, says("how often claimctl wrote the claim during the step")]
    seconds: float
    message: str
    claim_revisions_per_second: int | None = None
    pending: Annotated[int | None, says("pods that found no place in the list")] = None


class DemoReport(Document, frozen=True):
    """``claimctl demo``"""

    dialect: Annotated[str, says("the dialects that were played, with commas between")]
    version: Annotated[str, says("the Kubernetes versions, with commas between")]
    played_on: str
    ok: bool
    seconds: float
    steps: tuple[DemoStep, ...]
    violations: int
    errors: Annotated[Names, says("errors inside the cluster itself")]
    violation_details: tuple[Violation, ...]


class PlayedClaim(Part, frozen=True):
    namespace: str
    name: str
    devices: Annotated[Names, says("pool/device")]
    pods: Names
    most_pods_listed: int
    workloads: Names
    while_idle: Annotated[str, says("the hold while no pod used it; '' if never idle")]
    allocated: Annotated[bool, says("whether it is allocated at the end")]
    released_by: str
    reason: str
    not_reserved: Annotated[str, says("why claimctl did not reserve it, if it was asked to")]


class DemoPlay(Document, frozen=True):
    """``claimctl demo -f``"""

    dialect: str
    version: str
    claims: tuple[PlayedClaim, ...]
    pending_pods: Names
    violations: int
    violation_details: tuple[Violation, ...]
