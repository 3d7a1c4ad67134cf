"""Annotates a workload, once it is sure that the annotation reserves something, and says whether a
controller acts on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from claimctl.cli.documents import Document, says
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.kinds import KindReader
from claimctl.cli.objects import resource_name
from claimctl.cli.output import print_text
from claimctl.cli.progress import progress
from claimctl.cli.session import Session
from claimctl.cli.watching import changes
from claimctl.commands.claims.election import ControllerState, State, election
from claimctl.commands.claims.missing import naming
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.live_objects import Changed, change_object
from claimctl.reservation.annotation import IDLE_TIMEOUT_ANNOTATION, RETENTION_ANNOTATION, plan
from claimctl.reservation.annotation import Annotated as AnnotatedWorkload
from claimctl.reservation.facts.ancestors import AnnotationStanding
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.facts.reasons import ConditionType
from claimctl.reservation.facts.workloads import WorkloadPhase, judged, observe
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import RESERVE_ANNOTATION, ClaimReservation, WorkloadRef
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS

SOON_SECONDS = 5.0
"""A controller that runs makes the ClaimReservations within this time."""


class Reserving(Document, frozen=True, kw_only=True):
    """``claimctl reserve``"""

    dry_run: bool
    workload_kind: str
    namespace: str
    name: str
    claims: Annotated[tuple[str, ...], says("names of the claims that the annotation reserves")]
    annotations: Annotated[dict[str, str], says("what is written")]
    controller: Annotated[
        ControllerState | None, says("whether one acts on the annotation; null after a dry run")
    ] = None


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


async def reserve(
    session: Session, wanted: Wanted, output: Output, limit: float | None = None
) -> int:
    """Annotate the workload, and print what that reserves; the exit code.

    Args:
        limit: for how many seconds to wait until the claims are reserved, 0 for no limit; None for
            not at all.
    """
    done = await annotate(session, wanted)
    if not wanted.dry_run:
        done = msgspec.structs.replace(done, controller=await _look(session, done, limit))
    print_text(output, lines(done), done, (resource_name(done.workload_kind, done.name),))
    waits = done.controller is not None and done.controller.state is State.NOT_ACTING
    return ExitCode.FINDINGS if waits else ExitCode.OK


async def _look(session: Session, done: Reserving, limit: float | None) -> ControllerState:
    """Find out whether a controller acts on the annotation: by its Lease, else by what it makes."""
    now = await election(session.client, session.clock.now())
    try:
        await _reserved_claims(session.client, done, ready=False)
    except NotFound:
        text = "claimctl is not installed: the cluster serves no ClaimReservations"
        return ControllerState(State.NOT_ACTING, text)
    except Forbidden:
        return ControllerState(now.state, f"you may not list ClaimReservations; {now.message}")
    if now.state is State.NOT_ACTING:
        return ControllerState(now.state, f"no controller acts: {now.message}")
    if now.state is State.ACTING and limit is None:
        return ControllerState(now.state, now.message)
    seconds = SOON_SECONDS if limit is None else limit
    try:
        with progress("waiting until the claims are reserved"):
            async with asyncio.timeout(seconds or None):
                await _until_reserved(session, done, ready=limit is not None)
    except TimeoutError:
        text = f"no controller has reserved it for {seconds:g} s ({now.message})"
        return ControllerState(State.NOT_ACTING, text)
    return ControllerState(State.ACTING, now.message)


async def _until_reserved(session: Session, done: Reserving, *, ready: bool) -> None:
    """Return when every claim has its ClaimReservation for the workload, which is Ready if
    ``ready``. Of a workload whose pods say which claims these are, one is enough."""
    async with changes(
        session.client, session.clock, session.namespace, (CLAIMRESERVATIONS,)
    ) as news:
        async for _ in news:
            reserved = await _reserved_claims(session.client, done, ready=ready)
            if reserved and reserved.issuperset(done.claims):
                return


async def _reserved_claims(client: Client, done: Reserving, *, ready: bool) -> frozenset[str]:
    items = (await client.list(CLAIMRESERVATIONS, done.namespace)).items
    return frozenset(
        made.spec.resource_claim_name
        for made in items
        if (made.spec.workload_ref.kind, made.spec.workload_ref.name)
        == (done.workload_kind, done.name)
        and (_is_ready(made) or not ready)
    )


def _is_ready(reservation: ClaimReservation) -> bool:
    status = reservation.status
    ready = find_condition(status.conditions, ConditionType.READY)
    seen = status.observed_generation == reservation.metadata.generation
    return seen and ready is not None and ready.status == "True"


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
    """What was written, whether it acts, and how to look and to undo it."""
    target = f"{done.workload_kind.lower()}/{done.name}"
    count = "claim" if len(done.claims) == 1 else "claims"
    # the pods of some kinds say which claims these are, and there may be none yet
    which = f"{count} {', '.join(done.claims)}" if done.claims else "the claims that its pods name"
    if done.dry_run:
        written = " ".join(f"{name}={value}" for name, value in done.annotations.items())
        head = f"{which} would be reserved (dry run) for {target} in {done.namespace}"
        return [head, f"it would be annotated: {written}"]
    undo = f"To end it: kubectl -n {done.namespace} annotate {target} {RESERVE_ANNOTATION}-"
    look = f"To see it: claimctl explain {target} -n {done.namespace}"
    if done.controller is None or done.controller.state is State.ACTING:
        return [f"{which} reserved for {target} in {done.namespace}", look, undo]
    head = f"{target} in {done.namespace} is annotated, to reserve {which}"
    if done.controller.state is State.UNKNOWN:
        return [
            head,
            f"Whether a controller acts is not known: {done.controller.message}",
            look,
            undo,
        ]
    return [
        head,
        f"Nothing is reserved yet: {done.controller.message}",
        "What to do: claimctl doctor (the annotation stays, and the controller acts on it when it "
        "runs)",
        look,
        undo,
    ]
