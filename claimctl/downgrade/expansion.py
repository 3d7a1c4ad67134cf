"""Decide how workload references become pod references, so that a feature can be switched off.

Without the feature, the kubelet starts a pod only if ``status.reservedFor`` lists the pod itself.
So the list must name every pod that may be running, and only pods may hold the claim. KEP-5194
(Upgrade / Downgrade) asks administrators to replace references to workloads by references to pods.
claimctl replaces the references that the feature or claimctl itself wrote. A claim with a
workload reference of another writer stays unchanged.

``expand`` decides. What forbids it is an ``ExpansionObstacle``: ``_obstacle`` finds it, and
``_explain`` has the text. The command that helps is in ``claimctl.commands.downgrade.standing``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from claimctl.downgrade.pods import PodsOfClaims
from claimctl.reservation.facts.pods import Consumers, claim_names, is_done, is_finished
from claimctl.reservation.facts.recorded_references import recorded_reference
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
    listed_ahead,
)
from claimctl.reservation.facts.unreadable import claims_named
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, DowngradedClaim, DowngradePlanSpec
from claimctl.wire.resources import RESOURCECLAIMS, Resource, read_as
from claimctl.wire.unreadable import Unreadable


class ExpansionObstacle(StrEnum):
    """Why the workload references of a claim cannot be replaced by pod references."""

    TOO_MANY_CONSUMERS = "TooManyConsumers"
    GENERATED_FOR_POD_GROUP = "GeneratedForPodGroup"
    BEING_DELETED = "BeingDeleted"
    NO_CONSUMER = "NoConsumer"
    UNKNOWN_REFERENCE = "UnknownReference"
    UNREADABLE_POD = "UnreadablePod"


@dataclass(frozen=True, slots=True)
class Expanded:
    """The list that should be written."""

    reserved_for: tuple[Reference, ...]
    removed: tuple[Reference, ...]
    """The workload references that the new list leaves out."""
    ahead: frozenset[str] = frozenset()
    """UIDs of the pending pods that claimctl listed ahead. Their entries leave first: a scheduler
    may be binding such a pod without a write to the claim, and the workload references keep the
    claim allocated meanwhile. Left behind, these entries would keep it allocated for ever."""

    @property
    def pods(self) -> int:
        return sum(map(is_pod, self.reserved_for))


@dataclass(frozen=True, slots=True)
class ExpansionRefused:
    """The claim must not be changed; ``message`` names the workload and what would help."""

    obstacle: ExpansionObstacle
    message: str
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Unchanged:
    """There is nothing to write."""

    pods: int = 0
    by_pods: bool = False
    """Whether the claim is allocated and only pods hold it."""


Expansion = Expanded | ExpansionRefused | Unchanged


class ClaimToUpgrade(ResourceClaim, frozen=True, kw_only=True):
    """A claim under a plan for an upgrade: its references to PodGroups are replaced. The feature
    stays on, so the workload keeps the claim, also without pods."""


def claims_under(spec: DowngradePlanSpec) -> Resource[ResourceClaim]:
    """The resource to read the claims of a plan as."""
    return read_as(RESOURCECLAIMS, ClaimToUpgrade) if spec.upgrade_to else RESOURCECLAIMS


def workload_references(claim: ResourceClaim) -> tuple[Reference, ...]:
    """The references that pod references have to replace."""
    is_replaced = is_pod_group if isinstance(claim, ClaimToUpgrade) else is_workload
    return tuple(filter(is_replaced, claim.status.reserved_for))


def unknown_references(
    claim: ResourceClaim, on_record: Collection[str] = ()
) -> tuple[Reference, ...]:
    """The workload references that another writer put there as a hold.

    Three kinds of references are known:

    - references that claimctl listed (``uids_on_record``). managedFields alone prove nothing: every
      user who may update the claim may write them;
    - the reference that the scheduler copied from ``spec.reservedFor``;
    - PodGroups: the scheduler and kube-controller-manager list them, and neither removes them
      once the feature gate is off.
    """
    return tuple(
        reference
        for reference in workload_references(claim)
        if reference.uid not in on_record
        and reference != claim.spec.reserved_for
        and not is_pod_group(reference)
    )


def expand(
    claim: ResourceClaim,
    pods: Collection[Pod],
    *,
    on_record: Collection[str] = (),
    opened_by: Iterable[Reference] = (),
    tombstones: bool = True,
    unreadable: Iterable[Unreadable] = (),
) -> Expansion:
    """Decide the list of a claim in which pod references replace the workload references.

    Args:
        claim: the claim at the resourceVersion that will be the precondition of the write.
        pods: the pods that name the claim or that its list names, from a live LIST that began
            after the claim was read. A listed pod that is not among them is gone.
        on_record: UIDs of the references that the statuses of reservations record for this claim.
        opened_by: references that an earlier run removed. A scheduler that saw one of them may
            bind a pending pod without a write to the claim.
        tombstones: whether to keep tombstones, because a controller stays that will remove them
            later. Without a controller they would stay and keep kube-controller-manager from
            deallocating.
        unreadable: the pods of that LIST that cannot be read.
    """
    listed = claim.status.reserved_for
    workloads = workload_references(claim)
    consumers = Consumers.of(pod for pod in pods if claim.metadata.name in claim_names(pod))
    missing = _missing(claim, consumers, (*workloads, *opened_by))
    if claim.status.allocation is None:
        return Unchanged()
    uids = {entry.uid for entry in listed}
    uncertain = [
        unread
        for unread in unreadable
        if (names := claims_named(unread)) is None
        or claim.metadata.name in names
        or unread.uid in uids
    ]
    unlisted = {unread.uid for unread in uncertain} - uids
    left_behind = not tombstones and any(map(is_tombstone, listed))
    if not workloads and not missing and not unlisted and not left_behind:
        return Unchanged(pods=sum(map(is_pod, listed)), by_pods=True)
    if uncertain:
        text = f"{uncertain[0].describe()}: correct or delete it first, it may use the claim"
        return ExpansionRefused(ExpansionObstacle.UNREADABLE_POD, text, sum(map(is_pod, listed)))
    holds = [entry for entry in listed if is_workload(entry) and entry not in workloads]
    # a hold keeps the claim allocated, and its controller takes the pods out that never start
    ahead = left_ahead(claim, consumers.pending) if workloads and not holds else frozenset()
    kept = (*_entries_to_keep(listed, pods, ahead), *holds) if workloads else listed
    reserved_for = _with_marks((*kept, *missing), pods, tombstones)
    unknown = unknown_references(claim, on_record)
    if obstacle := _obstacle(claim, unknown, reserved_for):
        count = sum(map(is_pod, reserved_for))
        return ExpansionRefused(obstacle, _explain(obstacle, claim, unknown, count), count)
    return Expanded(reserved_for, workloads, ahead)


def expand_recorded(
    claim: ResourceClaim,
    pods: PodsOfClaims,
    record: DowngradedClaim | None,
    *,
    on_record: Collection[str] = (),
    tombstones: bool = True,
) -> Expansion:
    """The same by a LIST of pods, for a claim whose references an earlier run may have removed."""
    return expand(
        claim,
        pods.of(claim),
        on_record=on_record,
        opened_by=record.replaced_references if record is not None else (),
        tombstones=tombstones,
        unreadable=pods.unreadable,
    )


def _missing(
    claim: ResourceClaim, consumers: Consumers, openers: Collection[Reference]
) -> tuple[Reference, ...]:
    """The pods that the list lacks: bound ones, and ones that may be bound without a listing."""
    known = {entry.uid for entry in claim.status.reserved_for if is_pod(entry)}
    open_to = (pod for pod in consumers.pending.values() if _is_open(claim, openers, pod))
    pods = (*consumers.bound.values(), *open_to)
    missing = (pod.reference for pod in pods if pod.metadata.uid not in known)
    return tuple(sorted(missing, key=lambda reference: (reference.name, reference.uid)))


def _is_open(claim: ResourceClaim, openers: Collection[Reference], pod: Pod) -> bool:
    """Whether a scheduler may be binding the pod without a write to the claim.

    Such a pod must be listed: without the feature, the kubelet refuses a bound pod that is not
    listed, and no component lists it later. See ``reservation.users.blockers``.
    """
    group = pod.spec.group_name
    names = {opener.name for opener in openers if is_pod_group(opener)}
    return claim.is_open_to_any or group in names


def _entries_to_keep(
    listed: tuple[Reference, ...], pods: Iterable[Pod], ahead: Collection[str]
) -> tuple[Reference, ...]:
    """The list without workloads and without pods that are gone, done or listed ahead.

    A pod without a node that the scheduler listed stays: the scheduler writes the claim first and
    binds the pod second, and may be between the two writes.
    """
    alive = {pod.metadata.uid for pod in pods if not is_done(pod)}.difference(ahead)
    return tuple(
        entry for entry in listed if is_tombstone(entry) or (is_pod(entry) and entry.uid in alive)
    )


def _with_marks(
    entries: tuple[Reference, ...], pods: Iterable[Pod], tombstones: bool
) -> tuple[Reference, ...]:
    """Drop tombstones of pods that are not finished; drop all of them if the list is too long."""
    marked = set()
    if tombstones and len(entries) <= LIMIT:
        marked = {pod.metadata.uid for pod in pods if is_finished(pod)}
    return tuple(entry for entry in entries if not is_tombstone(entry) or entry.uid in marked)


def _obstacle(
    claim: ResourceClaim, unknown: tuple[Reference, ...], reserved_for: tuple[Reference, ...]
) -> ExpansionObstacle | None:
    owner = claim.metadata.controller()
    group = "scheduling.k8s.io/"
    if owner and owner.kind == "PodGroup" and owner.api_version.startswith(group):
        return ExpansionObstacle.GENERATED_FOR_POD_GROUP
    if claim.metadata.deleting:
        return ExpansionObstacle.BEING_DELETED
    if unknown:
        return ExpansionObstacle.UNKNOWN_REFERENCE
    if len(reserved_for) > LIMIT:
        return ExpansionObstacle.TOO_MANY_CONSUMERS
    keep_it = any(is_pod(entry) or is_workload(entry) for entry in reserved_for)
    return None if keep_it else ExpansionObstacle.NO_CONSUMER


def _explain(
    obstacle: ExpansionObstacle, claim: ResourceClaim, unknown: tuple[Reference, ...], pods: int
) -> str:
    holders = names_of(workload_references(claim)) or "its former workload"
    match obstacle:
        case ExpansionObstacle.TOO_MANY_CONSUMERS:
            return _explain_excess(claim, holders, pods)
        case ExpansionObstacle.GENERATED_FOR_POD_GROUP:
            return (
                f"generated from the template of {holders}; without the feature, its pods fail "
                "whatever the claim lists: first give them another claim"
            )
        case ExpansionObstacle.BEING_DELETED:
            return f"being deleted, so pods of {holders} cannot be added: wait until they are gone"
        case ExpansionObstacle.NO_CONSUMER:
            return (
                f"held by {holders}, and no pod runs; with an empty list, its devices would stay "
                "allocated for good: scale up, or release the claim (claimctl release "
                f"{claim.metadata.name} -n {claim.metadata.namespace})"
            )
        case _:
            return (
                f"held by {names_of(unknown)}, which no ClaimReservation records, which is not a "
                "PodGroup, and not what the claim was created for: its owner must remove it"
            )


def _explain_excess(claim: ResourceClaim, holders: str, pods: int) -> str:
    meta, room = claim.metadata, _room(claim)
    scale = scale_command(claim)
    command = f" ({scale})" if scale else ""
    text = (
        f"{pods} pods of {holders} use the claim, {pods - room} more than the {room} that it can "
        f"list: scale down to {room} pods{command}, or use several claims"
    )
    if isinstance(claim, ClaimToUpgrade):
        return text
    return (
        f"{text}, or leave the claim as it is (--skip {meta.namespace}/{meta.name}): its pods "
        "then fail once the feature is off"
    )


def _room(claim: ResourceClaim) -> int:
    """How many pods the claim can list beside the references that stay."""
    replaced = workload_references(claim)
    stay = [entry for entry in claim.status.reserved_for if is_workload(entry)]
    return LIMIT - sum(entry not in replaced for entry in stay)


def scale_command(claim: ResourceClaim) -> str:
    """The command that scales the claim's workload to as many pods as a claim can list, or ''."""
    room, place, asked = _room(claim), f"-n {claim.metadata.namespace}", claim.spec.reserved_for
    holders = [*filter(is_workload, claim.status.reserved_for), *([asked] if asked else [])]
    for holder in holders:
        name = f"{holder.resource}/{holder.name}"
        match (holder.api_group, holder.resource):
            case ("apps", "deployments" | "statefulsets"):
                return f"kubectl scale {place} {name} --replicas={room}"
            case ("batch", "jobs"):
                patch = f'{{"spec":{{"parallelism":{room}}}}}'
                return f"kubectl patch {place} {name} --type=merge -p '{patch}'"
    return ""


def names_of(references: Iterable[Reference]) -> str:
    """The references for people, like ``deployments/train, jobs/tune``."""
    return ", ".join(f"{reference.resource}/{reference.name}" for reference in references)


def left_ahead(claim: ResourceClaim, pending: Mapping[str, Pod]) -> frozenset[str]:
    """UIDs of the pods that claimctl listed ahead in a claim without its hold: nobody takes their
    entries out.

    Listing ahead never concerns a pod of a PodGroup, or an allocation that admits any pod. There
    only a downgrade lists pending pods, and these entries have to stay.
    """
    allocation = claim.status.allocation
    if allocation is None or allocation.reserved_for_any_pod:
        return frozenset()
    alone = {uid for uid, pod in pending.items() if pod.spec.scheduling_group is None}
    return listed_ahead(claim, alone)


def uids_on_record(
    claim: ResourceClaim, reservations: Iterable[ClaimReservation]
) -> frozenset[str]:
    """UIDs of the references that claimctl listed in this claim for reservations."""
    meta = claim.metadata
    references = (
        recorded_reference(claim, reservation)
        for reservation in reservations
        if reservation.metadata.namespace == meta.namespace
        and reservation.spec.resource_claim_name == meta.name
    )
    return frozenset(reference.uid for reference in references if reference is not None)
