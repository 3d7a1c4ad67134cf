"""Annotates a workload, once it is sure that the annotation reserves something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from claimctl.cli.documents import Document, says
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.kinds import KindReader
from claimctl.cli.objects import resource_name
from claimctl.cli.output import print_text
from claimctl.cli.session import Session
from claimctl.commands.claims.explain_work import naming
from claimctl.live_objects import Changed, change_object
from claimctl.reservation.annotation import IDLE_TIMEOUT_ANNOTATION, RETENTION_ANNOTATION, plan
from claimctl.reservation.annotation import Annotated as AnnotatedWorkload
from claimctl.reservation.facts.ancestors import AnnotationStanding
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.facts.workloads import WorkloadPhase, judged, observe
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import PODS


class Reserving(Document, frozen=True, kw_only=True):
    """``claimctl reserve``"""

    dry_run: bool
    workload_kind: str
    namespace: str
    name: str
    claims: Annotated[tuple[str, ...], says("names of the claims that are reserved")]
    annotations: Annotated[dict[str, str], says("what is written")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags ask for; None leaves an annotation as it is.

    Attributes:
        claims: the names of the claims; () for all that the pod template names.
        idle_timeout: in seconds.
    """

    kind: str
    name: str
    claims: tuple[str, ...] = ()
    retention: str | None = None
    idle_timeout: int | None = None
    dry_run: bool = False

    @property
    def annotations(self) -> dict[str, str]:
        given = {
            RESERVE_ANNOTATION: ",".join(self.claims) or "*",
            RETENTION_ANNOTATION: self.retention,
            IDLE_TIMEOUT_ANNOTATION: None if self.idle_timeout is None else str(self.idle_timeout),
        }
        return {name: value for name, value in given.items() if value is not None}


async def reserve(session: Session, wanted: Wanted, output: Output) -> int:
    """Annotate the workload, and print what that reserves; the exit code."""
    done = await annotate(session, wanted)
    print_text(output, lines(done), done, (resource_name(done.workload_kind, done.name),))
    return ExitCode.OK


async def annotate(session: Session, wanted: Wanted) -> Reserving:
    """Write the annotations.

    Raises:
        UsageError: they would reserve nothing, or less than is asked for.
        CommandFailed: there is no such workload.
    """
    place, claims = session.namespace, tuple[str, ...]()
    kinds = KindReader(session.client)
    resource, rule = await kinds.required(wanted.kind)
    ref = WorkloadRef(api_group=resource.group, kind=resource.kind, name=wanted.name)
    named: frozenset[str] | None = None

    def patch(current: Any) -> dict[str, Any]:
        nonlocal claims
        subject = judged(current, rule) if rule is not None else current
        claims = reserved(ref, resource.api_version, subject, wanted, named)
        present = current.metadata.annotations or {}
        if wanted.dry_run or wanted.annotations.items() <= present.items():
            return {}
        return {"metadata": {"annotations": wanted.annotations}}

    async with naming(session.client, ref.kind, place, wanted.name):
        meta = (await session.client.get(resource, wanted.name, place)).metadata
        authority = await kinds.who_decides(RESERVE_ANNOTATION, meta)
        if (
            authority.standing is AnnotationStanding.ABOVE
            and (above := authority.ancestor) is not None
        ):
            raise UsageError(
                f"an annotation of {ref.kind} {wanted.name} does not count, because it belongs to "
                f"{above}: claimctl reserve {above.kind.lower()}/{above.name} -n {place}"
            )
        if rule is not None:
            pods = (await session.client.list(PODS, place, partial=True)).items
            named = frozenset().union(*map(claim_names, await kinds.under(meta.uid, pods)))
        outcome = await change_object(session.client, resource, wanted.name, patch, place)
    if outcome is Changed.GONE:
        raise CommandFailed(f"{ref.kind} {place}/{wanted.name} not found")
    return Reserving(
        dry_run=wanted.dry_run,
        workload_kind=ref.kind,
        namespace=place,
        name=wanted.name,
        claims=claims,
        annotations=wanted.annotations,
    )


def reserved(
    ref: WorkloadRef,
    api_version: str,
    workload: Any,
    wanted: Wanted,
    by_pods: frozenset[str] | None = None,
) -> tuple[str, ...]:
    """The claims that the workload gets by the wanted annotations.

    Args:
        by_pods: the claims that its pods name; None if its pod template says it.

    Raises:
        UsageError: one of the annotations is of no use, or no claim is reserved.
    """
    annotations = {**(workload.metadata.annotations or {}), **wanted.annotations}
    meta = msgspec.structs.replace(workload.metadata, annotations=annotations)
    annotated = AnnotatedWorkload(
        ref, api_version, msgspec.structs.replace(workload, metadata=meta), by_pods=by_pods
    )
    intended = plan(annotated)
    if intended.problems:
        raise UsageError("; ".join(problem.note for problem in intended.problems))
    claims = tuple(reservation.spec.resource_claim_name for reservation in intended.create)
    ended = observe(workload, "").phase is WorkloadPhase.ENDED or workload.metadata.deleting
    if not claims and by_pods is not None and not ended:
        return tuple(sorted(wanted.claims))
    if not claims:
        raise UsageError(
            f"{ref.kind} {ref.name} has ended or is being deleted: nothing can be reserved for it"
        )
    return claims


def lines(done: Reserving) -> list[str]:
    """What was written, and how to look and to undo it."""
    target = f"{done.workload_kind.lower()}/{done.name}"
    count = "claim" if len(done.claims) == 1 else "claims"
    verb = "would be reserved (dry run)" if done.dry_run else "reserved"
    # the pods of some kinds say which claims these are, and there may be none yet
    which = f"{count} {', '.join(done.claims)}" if done.claims else "the claims that its pods name"
    head = f"{which} {verb} for {target} in {done.namespace}"
    if done.dry_run:
        written = " ".join(f"{name}={value}" for name, value in done.annotations.items())
        return [head, f"it would be annotated: {written}"]
    return [
        head,
        f"To see it: claimctl explain {target} -n {done.namespace}",
        f"To end it: kubectl -n {done.namespace} annotate {target} {RESERVE_ANNOTATION}-",
    ]
