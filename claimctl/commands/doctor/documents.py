"""The document of ``claimctl doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from claimctl.cli.documents import Document, Names, by_names, says
from claimctl.commands.claims.election import ControllerState
from claimctl.commands.doctor.examination import Examination
from claimctl.commands.doctor.model import CheckVerdict, Finding


class Diagnosis(Document, frozen=True):
    """``claimctl doctor``"""

    dialect: str | None
    reasons: Names
    kubernetes_version: str
    served_versions: dict[str, Names]
    controller: ControllerState
    checks: tuple[Finding, ...]
    findings: Annotated[tuple[Finding, ...], says("the checks with the verdict problem")]


def diagnosis_of(seen: Examination, findings: Sequence[Finding]) -> Diagnosis:
    return Diagnosis(
        dialect=seen.observed.dialect or None,
        reasons=tuple(seen.detection.reasons if seen.detection else (seen.dialect_unknown,)),
        kubernetes_version=".".join(map(str, seen.there.kubernetes)),
        served_versions=seen.there.served_versions,
        controller=by_names(seen.there.election, ControllerState),
        checks=tuple(findings),
        findings=tuple(finding for finding in findings if finding.verdict is CheckVerdict.PROBLEM),
    )
