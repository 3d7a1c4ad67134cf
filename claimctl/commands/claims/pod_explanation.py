"""Read what explains a pod or a workload: its claims, who has their devices, and its Events."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from claimctl.cli import extensions
from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.claim_view import ClaimView, views
from claimctl.commands.claims.device_classes import (
    CLAIMS_WITH_REQUESTS,
    PUBLISHED_DEVICES,
    device_classes,
    everywhere,
    shortfall,
)
from claimctl.commands.claims.election import election
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.commands.claims.ordinals import (
    WITHOUT_POLICY,
    not_in_force,
    outdated,
    sticky_names,
    unmade,
)
from claimctl.commands.claims.places import read_plans
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings, RivalClaim
from claimctl.downgrade.scope import crosses
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.parallel import side_by_side
from claimctl.reservation import sticky
from claimctl.reservation.annotation import Annotated, Problem, plan
from claimctl.reservation.facts.ancestors import AnnotationStanding, describe_authority
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_workload
from claimctl.reservation.facts.workloads import JudgedWorkload, WorkloadState, judged, observe
from claimctl.text import natural
from claimctl.wire import resources as wire
from claimctl.wire.coordination import Event
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    RESERVE_ANNOTATION,
    STICKY_ANNOTATION,
    ClaimReservation,
    WorkloadRef,
)
from claimctl.wire.seams import Clock
from claimctl.wire.traces import WHOLE_PODS
from claimctl.wire.workloads import CustomWorkload, Workload, template_of

SHOWN = 3
"""How many waiting pods of a workload are explained, and claims that were made for its pods."""


async def explain_pod(client: Client, namespace: str, name: str, clock: Clock) -> PodFindings:
    """Explain one pod; NotFound if it does not exist."""
    pod = await client.get(WHOLE_PODS, name, namespace)
    return await _findings_of(client, KindReader(client), pod, clock, {})


async def _findings_of(
    client: Client, kinds: KindReader, pod: Pod, clock: Clock, known: dict[str, ClaimUse]
) -> PodFindings:
    uses = []
    for use in claim_uses(pod):
        if use.claim not in known or not use.claim:
            known[use.claim] = await _with_claim(client, kinds, pod.metadata.namespace, use, clock)
        uses.append(replace(known[use.claim], entry=use.entry, template=use.template))
    uses = await _unmade(client, pod, uses, clock)
    owners = tuple(f"{owner.kind.lower()}/{owner.name}" for owner in await kinds.chain(pod))
    gone = await _is_group_gone(client, pod)
    words = extensions.about_pod(pod)
    findings = PodFindings(pod, tuple(uses), owners=owners, group_gone=gone, words=words)
    if gone:
        plans = await read_plans(client)
        findings = replace(findings, upgrade=None if plans is None else any(map(crosses, plans)))
    if findings.state in ("Waiting", "Starting"):
        warnings = await _warnings(client, pod.metadata)
        notes = tuple(dict.fromkeys(f"{event.reason}: {event.note}" for event in warnings))
        findings = replace(findings, warnings=notes)
    if findings.state == "Waiting" and findings.may_lack_devices:
        findings = replace(findings, rivals=await _rivals(client, findings))
    return findings


async def _unmade(client: Client, pod: Pod, uses: list[ClaimUse], clock: Clock) -> list[ClaimUse]:
    """The same entries; of sticky claims that are not there, why claimctl has not made them."""
    waiting = sticky_names(pod) & {use.claim for use in uses if use.explanation is None}
    if not waiting:
        return uses
    elected = await election(client, clock.now())
    every = await list_if_allowed(client, wire.CLAIMRESERVATIONS, pod.metadata.namespace)
    texts = {
        name: unmade(
            pod,
            name,
            (made for made in every.items if made.spec.resource_claim_name == name),
            elected.message,
        )
        for name in waiting
    }
    return [
        replace(use, problem=texts[use.claim], unmade=True) if use.claim in waiting else use
        for use in uses
    ]


async def _is_group_gone(client: Client, pod: Pod) -> bool:
    """Whether the pod's PodGroup does not exist; False without the right to read it."""
    name, namespace = pod.spec.group_name, pod.metadata.namespace
    with suppress(Forbidden, UnreadableObject):
        return bool(name) and await client.find(wire.PODGROUPS, name, namespace) is None
    return False


def claim_uses(pod: Pod) -> tuple[ClaimUse, ...]:
    """The entries of the pod's ``spec.resourceClaims``, with the names of generated claims."""
    made = {
        status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses
    }
    uses = [
        ClaimUse(
            entry=entry.name,
            claim=entry.resource_claim_name or made.get(entry.name) or "",
            template=entry.resource_claim_template_name or "",
        )
        for entry in pod.spec.resource_claims
    ]
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        uses.append(ClaimUse("extended resources", extended.resource_claim_name))
    return tuple(uses)


async def _with_claim(
    client: Client, kinds: KindReader, namespace: str, use: ClaimUse, clock: Clock
) -> ClaimUse:
    if not use.claim:
        text = f"the claim from template {use.template} is not made yet"
        return replace(use, problem=text)
    try:
        explanation = await explain(client, namespace, use.claim, clock.now(), kinds)
    except NotFound:
        return replace(use, problem=f"claim {use.claim} does not exist")
    except UnreadableObject as error:
        return replace(use, problem=error.unreadable.describe())
    return replace(use, explanation=explanation)


async def _warnings(client: Client, about: ObjectMeta) -> list[Event]:
    """The Warning events about an object, oldest first; none if they may not be listed."""
    events = await list_if_allowed(client, wire.EVENTS, about.namespace)
    own = (event for event in events.items if event.type == "Warning" and event.is_about(about))
    return sorted(own, key=last_seen)


def last_seen(event: Event) -> str:
    """When the Event happened last; kubelets set the time of the core API only."""
    last = event.series.last_observed_time if event.series is not None else ""
    return last or event.event_time or event.deprecated_last_timestamp or ""


async def _rivals(client: Client, findings: PodFindings) -> tuple[RivalClaim, ...]:
    """The claims with devices of the classes that the pod's claims without devices ask for."""
    claims_of_pod = (use.explanation.view.claim for use in findings.uses if use.explanation)
    waiting = {it.metadata.key for it in claims_of_pod if it.status.allocation is None}
    if not waiting:
        return ()
    place = findings.pod.metadata.namespace
    every = await everywhere(client, CLAIMS_WITH_REQUESTS, place)
    own = [claim for claim in every if claim.metadata.key in waiting]
    wanted = frozenset(name for claim in own for name in device_classes(claim))
    allocated = (claim for claim in every if claim.status.allocation is not None)
    claims = [claim for claim in allocated if device_classes(claim) & wanted]
    shown = views(claims, (), await everywhere(client, wire.CLAIMRESERVATIONS, place))
    slices = (await list_if_allowed(client, PUBLISHED_DEVICES)).items
    by_uid = {claim.metadata.uid: claim for claim in claims}
    busy = [view.claim for view in shown if not _is_held_idle(view)]
    rivals = []
    for view in shown:
        idle, claim = _is_held_idle(view), by_uid[view.claim.metadata.uid]
        why = shortfall(own, claim, busy, slices) if idle else None
        rivals.append(RivalClaim(view.namespace, view.name, view.devices, view.holders, idle, why))
    return tuple(sorted(rivals, key=lambda rival: not rival.idle))


def _is_held_idle(view: ClaimView) -> bool:
    """Whether the list has a hold, and every ClaimReservation reports since when no pod uses it: a
    status that was not written yet reports no pod either."""
    held = any(map(is_workload, view.claim.status.reserved_for)) and bool(view.reservations)
    statuses = [reservation.status for reservation in view.reservations]
    return held and not any(status.consumers or not status.idle_since for status in statuses)


@dataclass(frozen=True, slots=True)
class WorkloadFindings:
    """A workload with its claims, and why its pods wait."""

    ref: WorkloadRef
    namespace: str
    state: WorkloadState
    annotation: str | None
    above: str
    """What an object above has to do with the annotation; '' if nothing."""
    counts: bool
    """Whether an annotation of the workload counts."""
    problems: tuple[Problem, ...]
    """What is wrong with its annotations."""
    sticky: str | None
    """The annotation of its pod template that asks for sticky claims."""
    outdated: tuple[int, ...]
    """The ordinals whose pods have a claim which the pod template does not ask for any more."""
    reservations: tuple[ClaimReservation, ...]
    consumers: Consumers
    claims: tuple[Explanation, ...]
    missing: tuple[str, ...]
    """Claims that its pods name and that do not exist."""
    more_claims: int
    """How many claims of its pods, made from templates, are not in ``claims``."""
    waiting: tuple[PodFindings, ...]
    """Some of its pods that do not run."""

    @property
    def name(self) -> str:
        return f"{self.ref.kind.lower()}/{self.ref.name}"


async def explain_workload(
    client: Client, namespace: str, kind: str, name: str, clock: Clock
) -> WorkloadFindings:
    """Explain a workload.

    Args:
        kind: of a workload that claimctl reads itself; or a word that names another kind.

    Raises:
        NotFound: the workload does not exist.
        UsageError: nothing is known of the kind.
    """
    kinds = KindReader(client)
    async with side_by_side() as group:
        reserving = group.create_task(list_if_served(client, wire.CLAIMRESERVATIONS, namespace))
        # asked for with each claim; the answers are remembered
        group.create_task(kinds.served())
        subject = await _subject(client, kinds, namespace, kind, name)
    ref, state, workload = subject.ref, subject.state, subject.workload
    listed = reserving.result()
    own = tuple(reservation for reservation in listed.items if reservation.spec.workload_ref == ref)
    pods = Consumers.of(subject.pods)
    starting = (pod for pod in pods.bound.values() if pod.status.phase == "Pending")
    not_running = sorted(
        (*pods.pending.values(), *starting),
        key=lambda pod: (bool(pod.spec.node_name), pod.metadata.name),
    )
    known: dict[str, ClaimUse] = {}
    uses = [use for user in subject.users for use in claim_uses(user)]
    for use in uses:
        if use.claim and use.claim not in known:
            known[use.claim] = await _with_claim(client, kinds, namespace, use, clock)
    of_pods = (use.claim for pod in subject.pods for use in claim_uses(pod))
    awaited = {name for pod in subject.pods for name in sticky_names(pod)}
    generated = sorted({claim for claim in of_pods if claim} - known.keys(), key=natural)
    for claim in generated[:SHOWN]:
        known[claim] = await _with_claim(client, kinds, namespace, ClaimUse("", claim), clock)
    waiting = [await _findings_of(client, kinds, pod, clock, known) for pod in not_running[:SHOWN]]
    by_pods = frozenset(known) if isinstance(workload, JudgedWorkload) else None
    authority = await kinds.who_decides(RESERVE_ANNOTATION, workload.metadata)
    asked = workload.metadata.annotation(RESERVE_ANNOTATION)
    annotated = Annotated(ref, subject.api_version, workload, listed.items, by_pods, authority)
    problems = plan(annotated).problems
    without = (it.metadata.name for it in subject.pods if not_in_force(it) == WITHOUT_POLICY)
    problems += tuple(sticky.problems(workload, ref, without))
    old = outdated(workload, own, subject.pods)
    if not own and asked is not None:
        # why the controller last could not make what the annotation asks for
        events = await _warnings(client, workload.metadata)
        notes = [event.note for event in events if event.reason == Reason.LIMIT_EXCEEDED]
        problems += tuple(Problem(Reason.LIMIT_EXCEEDED, note) for note in notes[-1:])
    return WorkloadFindings(
        ref=ref,
        namespace=namespace,
        state=state,
        annotation=asked,
        above=describe_authority(authority, RESERVE_ANNOTATION) if asked is not None else "",
        counts=authority.standing is not AnnotationStanding.ABOVE,
        problems=tuple(dict.fromkeys(problems)),
        sticky=template_of(workload).metadata.annotation(STICKY_ANNOTATION),
        outdated=old,
        reservations=own,
        consumers=pods,
        claims=tuple(use.explanation for use in known.values() if use.explanation is not None),
        missing=tuple(
            name
            for name, use in known.items()
            if name and use.explanation is None and name not in awaited
        ),
        more_claims=len(generated[SHOWN:]),
        waiting=tuple(waiting),
    )


@dataclass(frozen=True, slots=True)
class _Subject:
    """A workload with its pods."""

    ref: WorkloadRef
    api_version: str
    workload: Workload
    state: WorkloadState
    pods: tuple[Pod, ...]
    users: tuple[Pod, ...]
    """The pods whose specs say which claims the workload uses; its template, if that is read."""


async def _subject(
    client: Client, kinds: KindReader, namespace: str, kind: str, name: str
) -> _Subject:
    resource, rule = await kinds.required(kind, also=("claim", "claimreservation", "pod"))
    ref = WorkloadRef(api_group=resource.group, kind=resource.kind, name=name)
    async with side_by_side() as group:
        listing = group.create_task(client.list(wire.PODS, namespace, partial=True))
        replicas = group.create_task(list_if_allowed(client, wire.REPLICASETS, namespace))
        workload: Workload = await client.get(resource, name, namespace)
    pods = listing.result().items
    if isinstance(workload, CustomWorkload) and rule is not None:
        workload = judged(workload, rule)
        own = await kinds.under(workload.metadata.uid, pods)
        return _Subject(ref, resource.api_version, workload, observe(workload, ""), own, own)
    sets = replicas.result().items
    kinds.know(replica_set.metadata for replica_set in sets)
    state = observe(workload, "", sets)
    makers = ((pod, pod.metadata.controller()) for pod in pods)
    own = tuple(pod for pod, maker in makers if maker and maker.uid in state.pod_owners)
    users = (Pod(spec=template_of(workload).spec),)
    return _Subject(ref, resource.api_version, workload, state, own, users)
