"""Make the snapshot of one claim from caches, findings and observations.

A fact that decisions need is a field of ``Snapshot``, of its ``Held`` or of its ``Memory``, and
``build`` fills it in. What has to be remembered from one reconcile to the next is noted by
``observe`` before that, or by the informers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from claimctl.controller.caches.ancestors import Ancestry
from claimctl.controller.caches.chains import Chains
from claimctl.controller.caches.informers import (
    BINDING_CONDITIONS,
    BY_CLAIM,
    Caches,
    reserved_key,
    workload_key,
)
from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.controller.live_reads import LIVE_ATTEMPTS, Findings, Investigator
from claimctl.controller.observations.observations import Observations
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.downgrade.scope import freezes
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.ancestors import AnnotationStanding, describe_authority
from claimctl.reservation.facts.devices import judge
from claimctl.reservation.facts.memory import Memory, SeenGhost
from claimctl.reservation.facts.ordinals import (
    NOTHING_KNOWN,
    OrdinalFacts,
    for_ordinal,
    part_of,
    sticky_of,
)
from claimctl.reservation.facts.pods import is_bound, is_done
from claimctl.reservation.facts.recorded_references import shown_reference
from claimctl.reservation.facts.references import (
    FEW_ENTRIES,
    groups_in,
    is_pod,
    is_pod_group,
)
from claimctl.reservation.facts.snapshot import Evidence, Held, Rules, Snapshot
from claimctl.reservation.facts.unreadable import may_freeze
from claimctl.reservation.facts.workloads import (
    JudgedWorkload,
    WorkloadPhase,
    WorkloadState,
    custom_state,
    judged,
    observe,
    orphaned_replica_sets_of,
    unknown_state,
    with_children,
    with_group_of_pods,
)
from claimctl.reservation.kinds.rules import Rule
from claimctl.reservation.sticky import asked_for, entry_of, with_present_settings
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import HasMetadata, ObjectHeader, reaches
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, ClaimReservation, ForceDeletedPod
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS, WORKLOADS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import CustomWorkload, ReplicaSet, Workload

T = TypeVar("T", bound=HasMetadata)


@dataclass(slots=True)
class Knowledge:
    """The sources of snapshots. The manager sets ``rules`` when the cluster changes."""

    caches: Caches
    observations: Observations
    investigator: Investigator
    clock: Clock
    rules: Rules
    chains: Chains = field(init=False)
    ancestry: Ancestry = field(init=False)

    def __post_init__(self) -> None:
        self.chains = Chains(self.caches)
        self.ancestry = Ancestry(self.caches, self.chains)


class Snapshots:
    """Makes snapshots. A reconcile calls ``observe`` and then ``build``, anew with each finding."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._know = knowledge
        self._nodes = CacheView(knowledge.caches.nodes)
        self._unreadable = UnreadableObjects(knowledge.caches)

    def lagging(self, key: ClaimKey) -> bool:
        """Whether the caches lack a write of this process about the claim."""
        fresh, caches = self._know.observations.own_writes, self._know.caches
        claim = caches.claims.get(key.name, key.namespace)
        if fresh.lags(RESOURCECLAIMS, key.namespace, key.name, claim.metadata if claim else None):
            return True
        return any(
            fresh.lags(
                CLAIMRESERVATIONS, key.namespace, reservation.metadata.name, reservation.metadata
            )
            for reservation in caches.reservations_of(key)
        )

    def observe(self, key: ClaimKey, findings: Findings) -> None:
        """Note in the observations what only this process knows: ghosts, dead pods, pods that have
        not started, devices that are gone, and deleted reservations."""
        seen, caches = self._know.observations, self._know.caches
        if findings.live_claim is not None:
            seen.claims.see(findings.live_claim)
        for workload, answer in findings.workloads.items():
            if answer is None:
                seen.gone_workloads[workload] = None
        claim = self._claim(key, findings)
        pods, reservations = caches.pods_of(key), caches.reservations_of(key)
        unreadable = self._unreadable.about(key, claim) if caches.unread() else ()
        unread = frozenset(item.uid for item in unreadable)
        present = unread | {pod.metadata.uid for pod in pods}
        if claim is not None:
            version = claim.metadata.resource_version
            seen.ghosts.observe_list(key, claim.status.reserved_for, present, version)
        recorded: list[ForceDeletedPod] = []
        latest = ""
        for reservation in reservations:
            recorded.extend(reservation.status.force_deleted_pods)
            version = reservation.metadata.resource_version
            latest = latest if latest and reaches(latest, version) else version
        seen.ghosts.observe_record(key, recorded, latest)
        for reservation in filter(lambda reservation: reservation.metadata.deleting, reservations):
            seen.reservations.being_deleted(reservation)
        if claim is not None:
            dead = (uid for uid in self._dead(claim, pods) if uid not in unread)
            waiting = (pod for pod in pods if pod.status.phase == "Pending" and is_bound(pod))
            unstarted = [pod.metadata.uid for pod in waiting]
            devices = judge(claim.devices, caches.slices_of(claim))
            seen.claims.observe_present(key, dead, unstarted, devices)
            seen.drivers.recall(claim, reservations)
            entries = {entry.uid for entry in claim.status.reserved_for}
            for pod in pods if len(entries) <= FEW_ENTRIES else ():
                if pod.metadata.uid in entries:
                    seen.pod_beside(key, claim, pod)

    def build(self, key: ClaimKey, findings: Findings) -> Snapshot:
        """Make the present snapshot. This does not change the observations."""
        know, caches, seen = self._know, self._know.caches, self._know.observations
        claim = self._claim(key, findings)
        pods = caches.pods_of(key)
        held = tuple(
            self._held(reservation, findings, pods) for reservation in caches.reservations_of(key)
        )
        pending = tuple(pod for pod in pods if not is_bound(pod))
        references = claim.status.reserved_for if claim else ()
        rules, gone = know.rules, know.investigator.gone
        if seen.kcm_left_dead_references:
            # the rules of the detected cluster, corrected by its observed behavior
            rules = replace(rules, kcm_cleans_mixed_lists=False)
        if seen.kcm_listed_finished_pod:
            rules = replace(rules, kcm_lists_finished_pods=True)
        if seen.drivers.refusing:
            rules = replace(rules, refusing_drivers=seen.drivers.refusing)
        # without a claim, nothing waits for its ghosts: those on record stay there
        memory, ghosts = Memory(), tuple(SeenGhost(it.pod) for it in seen.ghosts.of(key))
        if claim is not None:
            ghosts = seen.ghosts.of(key)
            memory = seen.claims.memory(
                claim,
                seen.arrivals.ages(pending) if pending else {},
                history_complete=seen.claims.openings.history_complete(claim, caches.pods.version),
                done_pods=seen.ghosts.done(filter(is_pod, references)),
            )
            suspicion_left = seen.drivers.suspicion_left(claim, pods)
            memory = replace(memory, suspicion_left=suspicion_left)
        # an unreadable slice may have binding conditions
        conditions = bool(caches.slices.by_index(BINDING_CONDITIONS, ""))
        return Snapshot(
            now=know.clock.now(),
            namespace=key.namespace,
            name=key.name,
            claim=claim,
            reservations=held,
            pods=pods,
            ghosts=ghosts,
            nodes=self._nodes,
            claims=CacheView(caches.claims, key.namespace),
            slices=caches.slices_of(claim),
            binding_conditions=conditions or any(caches.slices.unread()),
            groups=tuple(self._groups(key, claim, held, pending)),
            unreadable=self._unreadable.about(key, claim) if caches.unread() else (),
            to_create=self._to_create(key),
            frozen=self._frozen(key, claim),
            template_missing=findings.template_missing,
            template_refused=findings.template_refused,
            deletion_refused=findings.deletion_refused,
            rules=rules,
            evidence=Evidence(
                gone_pods=frozenset(entry.uid for entry in references if entry.uid in gone),
                present_pods=findings.present_pods,
                live=findings.live,
                claim_read_for=findings.claim_read_for,
                last_attempt=findings.claim_reads >= LIVE_ATTEMPTS,
            ),
            memory=memory,
        )

    def _claim(self, key: ClaimKey, findings: Findings) -> ResourceClaim | None:
        """The claim by a live read, if there was one, or else the version that all rounds use."""
        if findings.claim_read_for is not None:
            return findings.live_claim
        return findings.claim or self._know.caches.claims.get(key.name, key.namespace)

    def _held(
        self, reservation: ClaimReservation, findings: Findings, pods: tuple[Pod, ...]
    ) -> Held:
        """The reservation, with its workload and with what this process remembers of it."""
        seen, ref = self._know.observations, reservation.spec.workload_ref
        kind = self._know.caches.kinds.states.get((ref.api_group, ref.kind))
        served = kind.resource if kind is not None else None
        # a kind that is not served now has entries in lists, by the plural of its rule
        plural = kind.rule.plural if kind is not None else ""
        requests = seen.reservations.requests(reservation)
        facts = self._of_ordinal(reservation, findings)
        held = Held(
            reservation,
            with_group_of_pods(self._state(reservation, findings, facts), pods),
            wanted=self._wanted(reservation, facts),
            api_version=served.api_version if served is not None else "",
            served_as=served.plural if served is not None else plural,
            requests_met=seen.claims.requests_met(reserved_key(reservation), requests),
            above=self._above(reservation),
        )
        return seen.reservations.with_memory(held)

    def _above(self, reservation: ClaimReservation) -> str:
        """What is to be said of an object above the workload that owns the reservation."""
        workload = self._know.caches.workload(workload_key(reservation))
        owner = reservation.metadata.controller()
        if workload is None or owner is None or owner.uid != workload.metadata.uid:
            return ""
        authority = self._know.ancestry.who_decides(RESERVE_ANNOTATION, workload.metadata)
        text = describe_authority(authority, RESERVE_ANNOTATION)
        goes = authority.standing is AnnotationStanding.ABOVE
        return f"{text}; this hold goes when that one stands in the list" if goes else text

    def _wanted(
        self, reservation: ClaimReservation, facts: OrdinalFacts
    ) -> ClaimReservation | None:
        """The reservation of a sticky claim with the present settings of its workload."""
        workload = self._know.caches.workload(workload_key(reservation))
        if reservation.spec.sticky is None or workload is None:
            return None
        return with_present_settings(reservation, workload, facts)

    def _of_ordinal(self, reservation: ClaimReservation, findings: Findings) -> OrdinalFacts:
        """What says which claim the ordinal of a sticky claim has, besides the workload itself.
        Only what belongs to the workload counts: users can write any name."""
        caches, key = self._know.caches, workload_key(reservation)
        sticky, workload = sticky_of(reservation.spec), caches.workload(key)
        if sticky is None or workload is None:
            return NOTHING_KNOWN
        uid = workload.metadata.uid

        def belongs(item: ObjectHeader) -> bool:
            return uid in {owner.uid for owner in self._know.chains.above(item)}

        pods = caches.pods_of_ordinal(key, sticky.whose)
        facts = OrdinalFacts(pods=tuple(pod for pod in pods if belongs(pod)))
        if (part := part_of(reservation.spec)) is None:
            return facts
        part_key = WorkloadKey(part.api_group, part.kind, key.namespace, part.name)
        maker = findings.workloads.get(part_key, caches.workload(part_key))
        if maker is None or isinstance(maker, Unreadable) or not belongs(maker):
            return facts
        return replace(facts, part=maker)

    def _to_create(self, key: ClaimKey) -> ClaimReservation | None:
        """The reservation of a sticky claim that a pod names, and that has none yet."""
        caches = self._know.caches
        entry = entry_of(key.name, caches.sticky_pods_of(key))
        if entry is None:
            return None
        ref = entry.workload
        workload = caches.workload(WorkloadKey(ref.api_group, ref.kind, key.namespace, ref.name))
        return asked_for(key.namespace, entry, caches.reservations_of(key), workload)

    def _state(
        self, reservation: ClaimReservation, findings: Findings, facts: OrdinalFacts
    ) -> WorkloadState:
        """The state of the reservation's workload, as far as it concerns the claim."""
        state, key = self._workload(reservation, findings), workload_key(reservation)
        if reservation.spec.sticky is None:
            return state
        workload = findings.workloads.get(key)
        if workload is None and state.exists:
            workload = self._know.caches.workload(key)
        known = None if isinstance(workload, Unreadable) else self._judged(reservation, workload)
        return for_ordinal(state, known, reservation.spec, facts)

    def _workload(self, reservation: ClaimReservation, findings: Findings) -> WorkloadState:
        """The state of the reservation's workload as a whole: the first case that applies."""
        key, claim = workload_key(reservation), reservation.spec.resource_claim_name
        custom = (key.api_group, key.kind) not in WORKLOADS
        # 1. Its kind cannot be read.
        if custom and (problem := self._know.caches.kinds.problem((key.api_group, key.kind))):
            kind = self._know.caches.kinds.states.get((key.api_group, key.kind))
            rule = kind.rule if kind is not None else Rule(key.api_group, key.kind, "")
            return unknown_state(rule, problem)
        # 2. It cannot be read itself, in the cache or live.
        if (unreadable := self._know.caches.unreadable_workload(key)) is not None:
            return _unread_workload(unreadable, self._know.caches.workload(key))
        confirmed = key in findings.workloads
        gone = not confirmed and key in self._know.observations.gone_workloads
        workload = findings.workloads[key] if confirmed else self._know.caches.workload(key)
        if isinstance(workload, Unreadable):
            return _unread_workload(workload, None)
        # 3. Only a rule describes its kind.
        if custom:
            return self._custom(reservation, workload, findings, known=confirmed or gone)
        # 4. It exists, is known to be gone, or is only missing in the cache.
        if workload is not None:
            state = observe(workload, claim, self._replica_sets(reservation))
            return replace(state, confirmed=confirmed)
        if confirmed or gone:
            return WorkloadState(
                WorkloadPhase.ABSENT,
                orphaned_replica_sets=orphaned_replica_sets_of(
                    self._recorded_uid(reservation, findings),
                    claim,
                    self._replica_sets(reservation),
                ),
            )
        return WorkloadState(WorkloadPhase.UNSEEN)

    def _judged(self, reservation: ClaimReservation, workload: Workload | None) -> Workload | None:
        """The workload, under the rule of its kind also where a live read has shown it."""
        if not isinstance(workload, CustomWorkload) or isinstance(workload, JudgedWorkload):
            return workload
        ref = reservation.spec.workload_ref
        kind = self._know.caches.kinds.states.get((ref.api_group, ref.kind))
        return judged(workload, kind.rule) if kind is not None else None

    def _custom(
        self,
        reservation: ClaimReservation,
        workload: Workload | None,
        findings: Findings,
        *,
        known: bool,
    ) -> WorkloadState:
        """The state of a workload whose kind claimctl knows by a rule alone; it is ``known`` if a
        live read has shown the workload, or that it is gone."""
        ref, key = reservation.spec.workload_ref, reserved_key(reservation)
        kind = self._know.caches.kinds.states[ref.api_group, ref.kind]
        recorded = self._recorded_uid(reservation, findings, kind.rule.plural)
        makers: frozenset[str] = frozenset()
        workload = self._judged(reservation, workload)
        if workload is not None:
            assert isinstance(workload, JudgedWorkload)
            uid = workload.metadata.uid
            chains = map(self._know.chains.above, self._know.caches.pods_of(key))
            makers = frozenset(
                chain[0].uid for chain in chains if uid in {owner.uid for owner in chain}
            )
        held_for = (recorded, reservation.metadata.uid)
        state = custom_state(kind.rule, workload, makers, held_for, confirmed=known)
        left = findings.children.get(state.uid or recorded)
        return with_children(kind.rule, state, recorded, left)

    def _recorded_uid(
        self, reservation: ClaimReservation, findings: Findings, resource: str = ""
    ) -> str:
        """The UID of the incarnation for which the claim is held, or ''."""
        recorded, claim = reservation.status.reserved_for, None
        if recorded is None:
            claim = self._claim(reserved_key(reservation), findings)
        if claim is not None:
            recorded = shown_reference(claim, reservation, resource)
        return recorded.uid if recorded is not None else ""

    def _replica_sets(self, reservation: ClaimReservation) -> tuple[ReplicaSet, ...]:
        """The ReplicaSets whose pods use the claim."""
        return self._know.caches.replica_sets.by_index(BY_CLAIM, reserved_key(reservation))

    def _groups(
        self,
        key: ClaimKey,
        claim: ResourceClaim | None,
        held: tuple[Held, ...],
        pending: tuple[Pod, ...],
    ) -> Iterator[PodGroup]:
        """The PodGroups of the list, of the workloads and pending pods, and those that name it."""
        if not self._know.caches.groups.followed:
            return
        names = groups_in(claim.status.reserved_for if claim else ())
        names |= {holder.workload.pod_group for holder in held}
        names |= {pod.spec.group_name for pod in pending}
        groups = {group.metadata.name: group for group in self._know.caches.groups.sharing(key)}
        for name in names - groups.keys():
            group = self._know.caches.groups.get(GroupKey(key.namespace, name))
            if group is not None:
                groups[name] = group
        for name in sorted(groups):
            yield groups[name]

    def _dead(self, claim: ResourceClaim, pods: tuple[Pod, ...]) -> Iterator[str]:
        """UIDs of listed pods that are done or not in the cache, and of groups that are gone."""
        alive = {pod.metadata.uid for pod in pods if not is_done(pod)}
        for entry in filter(is_pod, claim.status.reserved_for):
            if entry.uid not in alive:
                yield entry.uid
        groups, namespace = self._know.caches.groups, claim.metadata.namespace
        if groups.followed and groups.synced:
            for entry in filter(is_pod_group, claim.status.reserved_for):
                group = groups.get(GroupKey(namespace, entry.name))
                if group is None or group.metadata.uid != entry.uid:
                    yield entry.uid

    def _frozen(self, key: ClaimKey, claim: ResourceClaim | None) -> bool:
        """Whether a DowngradePlan freezes the claim: it exists and has not failed."""
        labels = None if claim is None else claim.metadata.labels or {}
        plans = self._know.caches.plans
        if any(may_freeze(plan, key.namespace) for plan in plans.unread()):
            return True
        return any(freezes(plan, key.namespace, key.name, labels) for plan in plans.items())


def _unread_workload(unread: Unreadable, known: Workload | None) -> WorkloadState:
    """The state of an unreadable workload, with the last readable version if it is known."""
    uid = known.metadata.uid if known is not None and not unread.identified else unread.uid
    return WorkloadState(
        WorkloadPhase.UNREADABLE, uid=uid, confirmed=True, problem=unread.describe()
    )


class CacheView(Mapping[str, T], Generic[T]):
    """The objects of a cache by name, in one namespace, without a copy for every decision."""

    def __init__(self, cache: Informer[T], namespace: str = "") -> None:
        self._cache, self._namespace = cache, namespace

    def __getitem__(self, name: str) -> T:
        known = self._cache.get(name, self._namespace)
        if known is None:
            raise KeyError(name)
        return known

    def __iter__(self) -> Iterator[str]:
        metas = (item.metadata for item in self._cache.items())
        return iter(sorted(meta.name for meta in metas if meta.namespace == self._namespace))

    def __len__(self) -> int:
        return sum(1 for _ in self)
