"""The document of ``claimctl explain pod/NAME``.

The document of a workload (``workload_document``) has an ``ExplainedPod`` for each of its pods that
waits, and a ``ShortClaim`` for each of its claims. So a new field of these is in both documents.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from claimctl.cli.documents import Document, Names, Part, ReasonText, says, utc
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.pod_advice import next_steps
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings, RivalClaim
from claimctl.commands.claims.release_waits import waits_for


class ShortClaim(Part, frozen=True):
    name: str
    state: str
    devices: Names
    holders: Annotated[str, says("the workloads that its list has, and how many pods")]
    entries: Annotated[int, says("how many entries its list has")]
    notes: Annotated[Names, says("what keeps pods from it, and what is not known of that")]


def short_of(explanation: Explanation) -> ShortClaim:
    view = explanation.view
    return ShortClaim(
        name=view.name,
        state=view.state,
        devices=view.devices,
        holders=view.holders,
        entries=len(view.claim.status.reserved_for),
        notes=(
            *(f"its release waits: {text}" for text in waits_for(explanation)),
            *map(str, explanation.matters),
            *explanation.unknown,
            *explanation.uncreated.values(),
        ),
    )


class UsedClaim(Part, frozen=True):
    entry: Annotated[str, says("the name in the pod's spec.resourceClaims")]
    name: Annotated[str | None, says("null while a generated claim is not made")]
    state: str | None
    devices: Names
    holders: str
    entries: int
    problem: str | None


class ExplainedPod(Part, frozen=True):
    namespace: str
    name: str
    workload: Annotated[str | None, says("kind/name")]
    owners: Annotated[Names, says("kind/name, the nearest first; the last one is its workload")]
    state: Literal["Waiting", "Starting", "Running", "Ending", "Succeeded", "Failed"]
    since: Annotated[str | None, says("since when it waits, if it does")]
    node: str | None
    reasons: tuple[ReasonText, ...]
    claims: tuple[UsedClaim, ...]
    rivals: tuple[RivalClaim, ...]
    advice: Names


class PodExplanation(ExplainedPod, Document, frozen=True):
    """``claimctl explain pod/NAME``"""


def _used(use: ClaimUse) -> UsedClaim:
    known = short_of(use.explanation) if use.explanation else None
    return UsedClaim(
        entry=use.entry,
        name=use.claim or None,
        state=known.state if known else None,
        devices=known.devices if known else (),
        holders=known.holders if known else "",
        entries=known.entries if known else 0,
        problem=use.problem or None,
    )


P = TypeVar("P", bound=ExplainedPod)


def pod_of(pod: PodFindings, model: type[P]) -> P:
    meta = pod.pod.metadata
    return model(
        namespace=meta.namespace,
        name=meta.name,
        workload=pod.owners[-1] if pod.owners else None,
        owners=pod.owners,
        state=pod.state,  # type: ignore[arg-type]  # one of the six words
        since=utc(pod.since),
        node=pod.pod.spec.node_name or None,
        reasons=tuple(ReasonText(reason=word, message=text) for word, text in pod.reasons()),
        claims=tuple(_used(use) for use in pod.uses),
        rivals=pod.rivals,
        advice=next_steps(pod),
    )
