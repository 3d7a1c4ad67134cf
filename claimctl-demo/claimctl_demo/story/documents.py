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
