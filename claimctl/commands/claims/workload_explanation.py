"""Read what explains a workload: its claims, what is held for it, and why its pods wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.ordinals import (
    WITHOUT_POLICY,
    not_in_force,
    outdated,
    sticky_names,
)
from claimctl.commands.claims.pod_explanation import (
    claim_uses,
    findings_of,
    warnings_about,
    with_claim,
)
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.parallel import side_by_side
from claimctl.reservation import sticky
from claimctl.reservation.annotation import Annotated, Problem, plan
from claimctl.reservation.facts.ancestors import AnnotationStanding, describe_authority
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.workloads import JudgedWorkload, WorkloadState, judged, observe
from claimctl.text import natural
from claimctl.wire import resources as wire
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    RESERVE_ANNOTATION,
    STICKY_ANNOTATION,
    ClaimReservation,
    WorkloadRef,
)
from claimctl.wire.seams import Clock
from claimctl.wire.workloads import CustomWorkload, Workload, template_of

SHOWN = 3
"""How many waiting pods of a workload are explained, and claims that were made for its pods."""


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
    known, more = await _claims(client, kinds, namespace, subject, clock)
    awaited = {name for pod in subject.pods for name in sticky_names(pod)}
    waiting = [
        await findings_of(client, kinds, pod, clock, known) for pod in subject.not_running[:SHOWN]
    ]
    by_pods = frozenset(known) if isinstance(workload, JudgedWorkload) else None
    authority = await kinds.who_decides(RESERVE_ANNOTATION, workload.metadata)
    asked = workload.metadata.annotation(RESERVE_ANNOTATION)
    annotated = Annotated(ref, subject.api_version, workload, listed.items, by_pods, authority)
    problems = (*plan(annotated).problems, *subject.sticky_problems)
    if not own and asked is not None:
        problems += await _limits(client, workload.metadata)
    return WorkloadFindings(
        ref=ref,
        namespace=namespace,
        state=state,
        annotation=asked,
        above=describe_authority(authority, RESERVE_ANNOTATION) if asked is not None else "",
        counts=authority.standing is not AnnotationStanding.ABOVE,
        problems=tuple(dict.fromkeys(problems)),
        sticky=template_of(workload).metadata.annotation(STICKY_ANNOTATION),
        outdated=outdated(workload, own, subject.pods),
        reservations=own,
        consumers=subject.consumers,
        claims=tuple(use.explanation for use in known.values() if use.explanation is not None),
        missing=tuple(
            name
            for name, use in known.items()
            if name and use.explanation is None and name not in awaited
        ),
        more_claims=more,
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

    @property
    def consumers(self) -> Consumers:
        return Consumers.of(self.pods)

    @property
    def not_running(self) -> list[Pod]:
        """Its pods that wait for a node, then those that have one and do not run yet."""
        pods = self.consumers
        starting = (pod for pod in pods.bound.values() if pod.status.phase == "Pending")
        return sorted(
            (*pods.pending.values(), *starting),
            key=lambda pod: (bool(pod.spec.node_name), pod.metadata.name),
        )

    @property
    def sticky_problems(self) -> Iterator[Problem]:
        """What keeps its pods from the sticky claims that they ask for."""
        without = (it.metadata.name for it in self.pods if not_in_force(it) == WITHOUT_POLICY)
        return sticky.problems(self.workload, self.ref, without)


async def _subject(
    client: Client, kinds: KindReader, namespace: str, kind: str, name: str
) -> _Subject:
    resource, rule = await kinds.required(kind, also=("claim", "claimreservation", "pod", "node"))
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


async def _claims(
    client: Client, kinds: KindReader, namespace: str, subject: _Subject, clock: Clock
) -> tuple[dict[str, ClaimUse], int]:
    """By name, the claims that the workload uses, and some of those that were made for its pods;
    how many of these are left out."""
    known: dict[str, ClaimUse] = {}
    for use in (use for user in subject.users for use in claim_uses(user)):
        if use.claim and use.claim not in known:
            known[use.claim] = await with_claim(client, kinds, namespace, use, clock)
    of_pods = (use.claim for pod in subject.pods for use in claim_uses(pod))
    generated = sorted({claim for claim in of_pods if claim} - known.keys(), key=natural)
    for claim in generated[:SHOWN]:
        known[claim] = await with_claim(client, kinds, namespace, ClaimUse("", claim), clock)
    return known, len(generated[SHOWN:])


async def _limits(client: Client, workload: ObjectMeta) -> tuple[Problem, ...]:
    """Why the controller last could not make what the annotation asks for: a limit refused it."""
    events = await warnings_about(client, workload)
    notes = [event.note for event in events if event.reason == Reason.LIMIT_EXCEEDED]
    return tuple(Problem(Reason.LIMIT_EXCEEDED, note) for note in notes[-1:])
