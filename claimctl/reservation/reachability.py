"""Find out whether pods that want the claim can reach its devices, or a hold keeps them waiting."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from claimctl.reservation.pod_groups.membership import any_group_listed
from claimctl.reservation.pods import Consumers, unschedulable_since
from claimctl.reservation.reserved_for.references import LIMIT
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.unreadable import about_reach
from claimctl.wire.claims import (
    AllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaint,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceClaim,
    ResourceSlice,
)
from claimctl.wire.nodes import Node, Taint, Toleration
from claimctl.wire.reservations import REALLOCATE_ANNOTATION

_NODE_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/out-of-service",
    }
)


def stuck_since(snapshot: Snapshot, consumers: Consumers) -> datetime | None:
    """The time since which pods have waited for devices that they cannot reach, or None.

    The result is None in three cases: a bound pod uses the claim; a node or a ResourceSlice that
    cannot be read may lead to the devices; or pods of a workload that holds the claim could reach
    the devices, so that waiting pods of another workload do not end its hold.
    """
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    if allocation is None or consumers.bound or about_reach(snapshot.unreadable):
        return None
    seen = {uid: unschedulable_since(pod) for uid, pod in consumers.pending.items()}
    stuck = {uid: since for uid, since in seen.items() if since is not None}
    pods = [consumers.pending[uid].spec.tolerations for uid in stuck]
    if not stuck or reachable(allocation, snapshot, (*pods, *_of_holders(snapshot))):
        return None
    return max([min(stuck.values()), *_last_used(snapshot)])


def asks_to_reallocate(claim: ResourceClaim | None, held: Held) -> bool:
    """Whether the reservation has a request to give the claim's devices up without a timeout."""
    asked = held.reservation.metadata.annotation(REALLOCATE_ANNOTATION)
    return claim is not None and asked == claim.metadata.uid


def may_reallocate(held: Held) -> bool:
    """Whether the reservation ever lets claimctl give up devices that its pods cannot use."""
    return held.reservation.spec.reallocate_timeout_seconds is not None


def waiting_is_in_vain(snapshot: Snapshot, consumers: Consumers) -> bool:
    """Whether pending pods of the claim will not use its present devices.

    They cannot reach the devices, or a reservation asks to give the devices up.
    """
    asked = (each for each in snapshot.reservations if asks_to_reallocate(snapshot.claim, each))
    return any(map(may_reallocate, asked)) or stuck_since(snapshot, consumers) is not None


def _of_holders(snapshot: Snapshot) -> list[tuple[Toleration, ...]]:
    workloads = (held.workload for held in snapshot.reservations)
    return [each.tolerations for each in workloads if each.exists and not each.ended]


def list_full(snapshot: Snapshot, consumers: Consumers) -> bool:
    """Whether finished pods fill the list, so that a pending pod cannot be listed.

    claimctl cannot remove their tombstones alone, because kube-controller-manager would add the
    pods again.
    """
    listed = snapshot.listed_uids
    return (
        len(listed) >= LIMIT
        and not snapshot.shared
        and not any_group_listed(snapshot)
        and not consumers.bound
        and bool(consumers.pending)
        and not listed & consumers.pending.keys()
    )


def _last_used(snapshot: Snapshot) -> list[datetime]:
    times = [_last_consumer(snapshot, held) for held in snapshot.reservations]
    times += [held.reservation.status.allocation_time for held in snapshot.reservations]
    return [time for time in times if time is not None]


def _last_consumer(snapshot: Snapshot, held: Held) -> datetime | None:
    """When the last consumer went: by our clock if known, else by the status."""
    if held.unused_age is None:
        return held.reservation.status.last_consumer_time
    return snapshot.now - timedelta(seconds=held.unused_age)


def usable_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    """The nodes on which a pod with the claim could run, sorted by name.

    Before the claim is allocated, these are all schedulable nodes.
    """
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    selector = allocation.node_selector if allocation else None
    found = (snapshot.nodes[name] for name in sorted(snapshot.nodes))
    return tuple(node for node in found if _matches(selector, node))


def reachable(
    allocation: AllocationResult, snapshot: Snapshot, pods: Iterable[tuple[Toleration, ...]]
) -> bool:
    """Whether a node and the devices of the allocation can be reached by one of the pods.

    Only selectors, taints and published devices are checked.

    Args:
        pods: the tolerations of each pod.
    """
    nodes = [n for n in snapshot.nodes.values() if selects(allocation.node_selector, n)]
    if not any(admits(taints_of(n), tolerations) for tolerations in pods for n in nodes):
        return False
    return all(_usable(result, snapshot.slices) for result in allocation.devices.results or ())


def _matches(selector: NodeSelector | None, node: Node) -> bool:
    return _schedulable(node) and selects(selector, node)


def selects(selector: NodeSelector | None, node: Node) -> bool:
    """Whether an allocation with this selector can be used on the node."""
    terms = selector.node_selector_terms if selector else None
    return not terms or any(matches_term(term, node) for term in terms)


def _schedulable(node: Node) -> bool:
    return not node.spec.unschedulable and not any(
        taint.key in _NODE_TAINTS and taint.effect in BLOCKING_EFFECTS for taint in node.spec.taints
    )


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether the node fulfils every requirement of the term."""
    labels = node.metadata.labels or {}
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(rule, labels) for rule in term.match_expressions or ()) and all(
        _holds(rule, fields) for rule in term.match_fields or ()
    )


def _holds(rule: NodeSelectorRequirement, values: dict[str, str]) -> bool:
    """Whether the requirement is fulfilled. An unknown operator counts as fulfilled."""
    value, wanted = values.get(rule.key), rule.values or ()
    match rule.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, wanted, greater=rule.operator == "Gt")
    return True


def _compares(value: str | None, wanted: tuple[str, ...], *, greater: bool) -> bool:
    try:
        number, limit = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return number > limit if greater else number < limit


def _usable(result: DeviceRequestAllocationResult, slices: Iterable[ResourceSlice]) -> bool:
    """Whether the driver still publishes the device, without a taint that is not tolerated.

    If the driver publishes no ResourceSlice at all, the device counts as usable.
    """
    pool = [s for s in slices if s.spec.driver == result.driver and s.spec.pool.name == result.pool]
    if not pool:
        return not any(s.spec.driver == result.driver for s in slices)
    newest = max(s.spec.pool.generation for s in pool)
    current = [s for s in pool if s.spec.pool.generation == newest]
    if len(current) < current[0].spec.pool.resource_slice_count:
        return True
    return any(
        device.name == result.device and admits(device.all_taints, result.tolerations)
        for s in current
        for device in s.spec.devices or ()
    )


BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node counts as having: pods may tolerate it."""


def taints_of(node: Node) -> tuple[Taint, ...]:
    """The node's taints, with ``CORDON`` if the node is cordoned."""
    return (*node.spec.taints, CORDON) if node.spec.unschedulable else node.spec.taints


def admits(taints: Iterable[Taint | DeviceTaint], tolerations: Iterable[Toleration]) -> bool:
    """Whether the tolerations tolerate every taint that blocks scheduling."""
    known = tuple(tolerations)
    return all(
        any(tolerates(each, taint) for each in known)
        for taint in taints
        if taint.effect in BLOCKING_EFFECTS
    )


def tolerates(toleration: Toleration, taint: Taint | DeviceTaint) -> bool:
    """Whether the toleration is for this taint, whatever the taint's effect."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    return toleration.operator not in {"", "Equal"} or toleration.value == taint.value
