"""What ``claimctl explain`` prints, read again from what ``-o json`` prints."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from claimctl.commands.claims import explain_text
from claimctl.commands.claims.claim_document import ClaimExplanation, explanation_of
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.pod_document import PodExplanation, pod_of
from claimctl.commands.claims.pod_view import PodFindings
from claimctl.commands.claims.workload_document import WorkloadExplanation, workload_of
from claimctl.commands.claims.workload_explanation import WorkloadFindings

P = TypeVar("P", bound=msgspec.Struct)


def _again(part: P) -> P:
    return msgspec.convert(json.loads(msgspec.json.encode(part)), type(part))


def claim_lines(explanation: Explanation) -> list[str]:
    document: ClaimExplanation = explanation_of(explanation, explanation.assessment.snapshot.now)
    return explain_text.claim_lines(_again(document))


def pod_lines(findings: PodFindings) -> list[str]:
    return explain_text.pod_lines(_again(pod_of(findings, PodExplanation)))


def workload_lines(findings: WorkloadFindings) -> list[str]:
    document: WorkloadExplanation = workload_of(findings)
    return explain_text.workload_lines(_again(document))
