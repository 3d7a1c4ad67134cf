"""``claimctl doctor`` as lines and as a document: the cluster, the installation, the checks.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from claimctl.cli.documents import Document, Names, by_names, says
from claimctl.commands.claims.election import ControllerState, State
from claimctl.commands.doctor.cluster_checks import checks
from claimctl.commands.doctor.examination import Examination
from claimctl.commands.doctor.model import CheckVerdict, Finding
from claimctl.commands.doctor.versions import Skew, skew_of
from claimctl.text import listed

OLDEST = (1, 32)
"""The first release of Kubernetes that claimctl supports."""
_SEE_PODS = "look at its pods and its log: kubectl get pods -A -l app.kubernetes.io/name=claimctl"


def diagnosis(examination: Examination) -> tuple[Finding, ...]:
    """All lines; each check has at least one."""
    return (
        *_cluster(examination),
        *_dialect(examination),
        *_installation(examination),
        *_versions(examination),
        *_controller(examination),
        *(checks(examination.observed)),
    )


def _cluster(examination: Examination) -> Iterator[Finding]:
    there = examination.there
    major, minor = there.kubernetes
    if not any(there.kubernetes):
        text = "the server's version is not known"
        yield Finding("kubernetes", text, verdict=CheckVerdict.UNKNOWN)
    elif there.kubernetes < OLDEST:
        yield Finding("kubernetes", f"{major}.{minor}: claimctl needs 1.32 or newer")
    else:
        yield Finding("kubernetes", f"{major}.{minor}", verdict=CheckVerdict.OK)
    if there.served.claims:
        versions = ", ".join(there.served.claims)
        yield Finding("resource.k8s.io", versions, verdict=CheckVerdict.OK)
    else:
        yield Finding("resource.k8s.io", "not served: the cluster has no DRA; enable it")
    groups = ", ".join(there.served.groups) or "not served"
    yield Finding("podgroups", groups, verdict=CheckVerdict.FACT)


def _dialect(examination: Examination) -> Iterator[Finding]:
    if examination.detection is not None:
        why = "; ".join(examination.detection.reasons)
        yield Finding(
            "reservation-mode", f"{examination.detection.dialect}: {why}", verdict=CheckVerdict.OK
        )
    elif examination.observed.dialect:
        dialect = examination.observed.dialect
        text = f"{dialect}: the controller has recorded it in a ClaimReservation"
        yield Finding("reservation-mode", text, verdict=CheckVerdict.OK)
    else:
        yield Finding("reservation-mode", examination.dialect_unknown, verdict=CheckVerdict.UNKNOWN)


def _installation(examination: Examination) -> Iterator[Finding]:
    if not examination.missing_crds:
        yield Finding("installation", "the CRDs are served", verdict=CheckVerdict.OK)
        return
    part = "--image IMAGE" if examination.there.account is None else "--component crds"
    names = ", ".join(examination.missing_crds)
    text = f"these CRDs are missing: {names}; install them: `claimctl install {part}`"
    yield Finding("installation", text)


_SKEWS = {
    Skew.NONE: CheckVerdict.OK,
    Skew.DIFFERENT: CheckVerdict.PROBLEM,
    Skew.UNKNOWN: CheckVerdict.FACT,
}


def _versions(examination: Examination) -> Iterator[Finding]:
    """Whether the versions of the client, the controller and the CRDs go together."""
    skew, text = skew_of(examination.there.account, examination.crds_release)
    yield Finding("versions", text, verdict=_SKEWS[skew])


def _controller(examination: Examination) -> Iterator[Finding]:
    there = examination.there
    election, account = there.election, there.account
    if election.state is State.ACTING:
        yield Finding("controller", election.message, verdict=CheckVerdict.OK)
    elif not election.readable:
        text = f"not checked: {election.message}"
        yield Finding("controller", text, verdict=CheckVerdict.UNKNOWN)
    else:
        yield Finding("controller", f"{election.message}; {_SEE_PODS}")
    if there.strangers:
        text = f"not of the controller, whose namespace is {there.address.namespace}"
        if there.address.assumed:
            text = f"{text} (assumed: {there.address.assumed})"
        text = f"{text}: {listed(there.strangers, 3)}"
        yield Finding("strangers", text, verdict=CheckVerdict.FACT)
    if there.refused:
        text = f"not checked: {there.refused}"
        yield Finding("deployment", text, verdict=CheckVerdict.UNKNOWN)
    elif account is None:
        text = "no Deployment has the controller's labels: not installed, or outside of the cluster"
        yield Finding("deployment", text, verdict=CheckVerdict.FACT)
    else:
        text = f"{account.ready} of {account.wanted} pods ready, image {', '.join(account.images)}"
        bad = account.ready == 0 or account.ready < account.wanted
        verdict = CheckVerdict.PROBLEM if bad else CheckVerdict.OK
        text = f"{text}; {_SEE_PODS}" if bad else text
        yield Finding("deployment", text, account.namespace, account.deployment, verdict)


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
