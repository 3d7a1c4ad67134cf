"""Live GETs and quorum LISTs that decisions need beyond the caches.

A decision asks for them by its needs (``facts.decision``). Each kind of need is a case of
``Investigator.answer``. The answers are ``Findings``, and the next snapshot has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cachetools import LRUCache

from claimctl.controller.caches.informers import workload_key
from claimctl.controller.caches.kinds import KindCache
from claimctl.controller.children import children_left
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.shared_lists import SharedLists
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.decision import (
    ConfirmPods,
    ConfirmWorkload,
    ListChildren,
    ListLivePods,
    Need,
    ReadClaim,
    Write,
    WriteList,
)
from claimctl.reservation.facts.ordinals import part_of
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.facts.references import is_pod_group
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.facts.unreadable import claims_named
from claimctl.reservation.kinds.shipped import KINDS
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
    WORKLOADS,
    Resource,
)
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import CustomWorkload, Workload

MANY_PODS = 8
"""For more pods than this, one LIST is used instead of a GET for each."""
LIVE_ATTEMPTS = 5
"""The most attempts of a write beside a busy writer, each on a claim that was just read live."""
REMEMBERED_UIDS = 50_000
CATCH_UP_SECONDS = 3.0
"""How long to wait until the pod cache has reached the version of a LIST. This exceeds the time in
which a server confirms that no event is missing."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The answers of live reads within one reconcile. Each reconcile begins without any."""

    claim: ResourceClaim | None = None
    """The version of the claim that all rounds of one reconcile use, unless it was read live. If
    each round took the newest, a busy writer would change the list faster than its entries can be
    confirmed."""
    live_claim: ResourceClaim | None = None
    """The claim by a live read, which enters no cache; None if the claim is gone."""
    claim_read_for: Write | None = None
    """The write for which the claim was read live; None if it was not read."""
    claim_reads: int = 0
    """How often the claim was read live."""
    reservation_ended: bool = False
    """Whether a reservation is gone or being deleted, and the cache does not show it yet."""
    live: LiveList | None = None
    """The last LIST of the namespace's pods."""
    present_pods: frozenset[str] = frozenset()
    """UIDs of listed pods and PodGroups that a read showed to exist."""
    workloads: dict[WorkloadKey, Workload | Unreadable | None] = field(default_factory=dict)
    """Workloads, and their parts that make pods, that were read live by name; None if the object
    does not exist."""
    children: dict[str, tuple[str, ...] | str] = field(default_factory=dict)
    """By UID of a workload that is over: what is left of its children, or why that is unknown."""
    template_missing: bool = False
    template_refused: str = ""
    """Why the API server refuses a claim made from the template."""
    deletion_refused: bool = False
    """Whether the API server refuses to delete the claim."""

    @property
    def claim_gone(self) -> bool:
        """Whether a live read showed that the claim is gone."""
        return self.claim_read_for is not None and self.live_claim is None


class Investigator:
    """Answers the needs of decisions. UIDs that are gone are remembered: a UID never comes back."""

    def __init__(self, client: Client, pods: Informer[Pod], kinds: KindCache) -> None:
        self._client = client
        self._kinds = kinds
        self._cache = pods
        self.gone: LRUCache[str, None] = LRUCache(REMEMBERED_UIDS)
        """The UIDs of listed pods and PodGroups that a read showed to be gone."""
        self._lists = SharedLists(client, pods)

    async def answer(
        self, snapshot: Snapshot, needs: Iterable[Need | ReadClaim], findings: Findings
    ) -> Findings:
        """Read what a decision on this snapshot needs; raises KubeError."""
        for need in needs:
            match need:
                case ConfirmPods():
                    present = await self._present(snapshot.namespace, need.references)
                    findings = replace(findings, present_pods=findings.present_pods | present)
                case ConfirmWorkload():
                    findings = await self._confirm_workload(snapshot, need.reference, findings)
                case ListChildren():
                    left = await self._children(snapshot, need)
                    children = {**findings.children, need.reference.uid: left}
                    findings = replace(findings, children=children)
                case ListLivePods():
                    findings = replace(findings, live=await self._list(snapshot, need))
                case ReadClaim():
                    findings = await self._read_claim(snapshot, need, findings)
        return findings

    async def _present(self, namespace: str, references: tuple[Reference, ...]) -> frozenset[str]:
        """UIDs of the references whose objects exist. The others are remembered as gone."""
        pods = [entry for entry in references if not is_pod_group(entry)]
        groups = [entry for entry in references if is_pod_group(entry)]
        gone = [group for group in groups if await self._is_gone(PODGROUPS, namespace, group)]
        if len(pods) > MANY_PODS:
            gone += await self._not_listed(namespace, pods)
        else:
            gone += [pod for pod in pods if await self._is_gone(PODS, namespace, pod)]
        for reference in gone:
            self.gone[reference.uid] = None
        return frozenset(ref.uid for ref in references if ref.uid not in self.gone)

    async def _not_listed(self, namespace: str, pods: list[Reference]) -> list[Reference]:
        """The pods that a LIST lacks; none if an unreadable pod in it may be any of them."""
        uids = (await self._lists.get(namespace)).all_uids
        return [] if "" in uids else [pod for pod in pods if pod.uid not in uids]

    async def _is_gone(self, resource: Resource[Any], namespace: str, reference: Reference) -> bool:
        """Whether the object is gone. An unreadable object of that name must have another UID."""
        try:
            live = await self._client.get(resource, reference.name, namespace)
        except NotFound:
            return True
        except UnreadableObject as error:
            return error.unreadable.uid not in ("", reference.uid)
        return bool(live.metadata.uid != reference.uid)

    async def _confirm_workload(
        self, snapshot: Snapshot, reference: Reference, findings: Findings
    ) -> Findings:
        """Read a workload by its name, and its parts."""
        resource = self._resource(reference)
        key = WorkloadKey(resource.group, resource.kind, snapshot.namespace, reference.name)
        answer: Workload | Unreadable | None
        try:
            answer = await self._client.get(resource, reference.name, snapshot.namespace)
        except NotFound:
            custom = resource.type is CustomWorkload
            answer = await self._as_served(resource, snapshot, reference) if custom else None
        except UnreadableObject as error:
            answer = error.unreadable
        parts = await self._parts(snapshot, key)
        return replace(findings, workloads={**findings.workloads, key: answer, **parts})

    async def _parts(
        self, snapshot: Snapshot, workload: WorkloadKey
    ) -> dict[WorkloadKey, Workload | None]:
        """The parts of the workload that make the pods of the claim's ordinal. They tell which
        claim the next pod has, and their cache may be late as that of workloads may."""
        parts: dict[WorkloadKey, Workload | None] = {}
        for held in snapshot.reservations:
            part = part_of(held.reservation.spec)
            if part is not None and workload_key(held.reservation) == workload:
                resource = WORKLOADS[part.api_group, part.kind]
                key = WorkloadKey(part.api_group, part.kind, snapshot.namespace, part.name)
                parts[key] = await self._client.find(resource, part.name, snapshot.namespace)
        return parts

    def _resource(self, reference: Reference) -> Resource[Any]:
        """The resource of a workload reference that a decision asks about."""
        custom = self._kinds.served(reference.api_group, reference.resource)
        if custom is not None:
            return custom
        return WORKLOADS[reference.api_group, KINDS[reference.api_group, reference.resource]]

    async def _as_served(
        self, resource: Resource[Any], snapshot: Snapshot, reference: Reference
    ) -> Workload | Unreadable | None:
        """The object of a kind as the cluster serves the kind now; None if it is gone. A path
        answers 404 also when the kind, or this version of it, is not served any more."""
        served = await Discovery(self._client).workload((resource.group, resource.kind))
        if served is None:
            why = f"the cluster does not serve {resource.plural}.{resource.group} any more"
            return Unreadable(resource, why, snapshot.namespace, reference.name)
        if served.version == resource.version:
            return None
        return await self._client.find(served, reference.name, snapshot.namespace)

    async def _children(self, snapshot: Snapshot, need: ListChildren) -> tuple[str, ...] | str:
        """What is left of the objects that the workload made, by LISTs that begin now."""
        reference, resource = need.reference, self._resource(need.reference)
        state = self._kinds.states.get((resource.group, resource.kind))
        if state is None:
            return f"{reference.resource}.{reference.api_group} is not served"
        try:
            return await children_left(
                self._client,
                self._kinds.states,
                state,
                snapshot.namespace,
                reference.uid,
                orphans_with=snapshot.name if need.orphans else "",
            )
        except (Forbidden, UnreadableObject) as error:
            return f"cannot look for what {state.rule.kind} {reference.name} made: {error}"

    async def _read_claim(
        self, snapshot: Snapshot, need: ReadClaim, findings: Findings
    ) -> Findings:
        """Read the claim. Before the first attempt to write its list, read its reservations."""
        # A cache that is late for the claim may be late for its reservations, too, and a hold for
        # one that is gone would stay for ever. The claim comes last: the write follows at once.
        reads = findings.claim_reads + 1
        ended = (
            reads == 1 and isinstance(need.before, WriteList) and await self._has_ended(snapshot)
        )
        claim = await self._client.find(RESOURCECLAIMS, snapshot.name, snapshot.namespace)
        return replace(
            findings,
            live_claim=claim,
            claim_read_for=need.before,
            claim_reads=reads,
            reservation_ended=ended,
        )

    async def _has_ended(self, snapshot: Snapshot) -> bool:
        """Whether a reservation is gone or being deleted, although the cache shows it as kept."""
        for meta in (held.reservation.metadata for held in snapshot.reservations):
            if meta.deleting:
                continue
            try:
                live = await self._client.get(CLAIMRESERVATIONS, meta.name, meta.namespace)
            except (NotFound, UnreadableObject):
                return True
            if live.metadata.uid != meta.uid or live.metadata.deleting:
                return True
        return False

    async def _list(self, snapshot: Snapshot, need: ListLivePods) -> LiveList:
        """Make a quorum LIST of the pods, after the claim's version was read.

        The LIST lacks a pod that was bound and force-deleted just before, and so may the claim's
        list. So the result counts for the claim's version only after the pod cache has reached the
        version of the LIST: then the pod is known as a ghost.
        """
        settled = snapshot.settling_left == 0
        pods = await self._lists.get(snapshot.namespace)
        caught_up = not need.vanished or await self._cache.probes.catch_up(
            pods.version, CATCH_UP_SECONDS
        )
        return LiveList(
            # with no version it counts for none
            need.claim_version if caught_up else "",
            tuple(pod for pod in pods.using if snapshot.name in claim_names(pod)),
            pods.all_uids - {""},
            settled=settled,
            caught_up=need.vanished,
            unreadable=tuple(item for item in pods.unreadable if _may_name(item, snapshot.name)),
        )

    async def live_pods(self, namespace: str) -> tuple[Pod, ...]:
        """The pods that name a claim, by a quorum LIST that begins now; raises KubeError, also if a
        pod that may name a claim cannot be read."""
        listed = await self._lists.get(namespace)
        for item in listed.unreadable:
            if claims_named(item) != frozenset():
                raise UnreadableObject("GET", PODS.path(namespace), item)
        return listed.using


def _may_name(pod: Unreadable, claim: str) -> bool:
    """Whether the pod may name the claim. A pod without a readable UID may be any listed pod."""
    names = claims_named(pod)
    return names is None or claim in names or not pod.uid
