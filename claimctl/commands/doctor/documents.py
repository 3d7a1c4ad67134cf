"""The documents of ``claimctl doctor`` and ``version``."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Annotated

from claimctl import __version__
from claimctl.cli.documents import Document, Names, Part, by_names, says
from claimctl.commands.claims.controller_health import ControllerState
from claimctl.commands.doctor.cluster_checks import CheckVerdict, Finding
from claimctl.commands.doctor.examination import Examination
from claimctl.commands.doctor.versions import Skew, Versions


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


class ControllerImage(Part, frozen=True):
    namespace: str
    deployment: str
    images: Names
    ready: int
    wanted: int


class SkewState(Part, frozen=True):
    verdict: Skew
    message: str


class ServerVersions(Part, frozen=True):
    kubernetes: str
    served_versions: dict[str, Names]
    crds_from: str | None
    controller: ControllerImage | None
    lease: ControllerState
    dialect: str | None
    skew: SkewState


class Version(Document, frozen=True):
    """``claimctl version``"""

    claimctl: str
    python: str
    server: ServerVersions | None


def version_of(versions: Versions | None) -> Version:
    python = platform.python_version()
    if versions is None:
        return Version(claimctl=__version__, python=python, server=None)
    (verdict, message), there = versions.skew, versions.there
    server = ServerVersions(
        kubernetes=".".join(map(str, there.kubernetes)),
        served_versions={**there.served_versions, "claimctl.io": versions.crds},
        crds_from=versions.crds_release or None,
        controller=by_names(there.account, ControllerImage) if there.account else None,
        lease=by_names(there.election, ControllerState),
        dialect=versions.dialect or None,
        skew=SkewState(verdict=verdict, message=message),
    )
    return Version(claimctl=__version__, python=python, server=server)
