"""Which pods may be moved at all: the rules of the evictor.

The names of the switches are those of descheduler's ``podProtections``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from claimctl.label_selectors import selects
from claimctl.reservation.facts.pods import TERMINAL_PHASES, claim_names
from claimctl.wire.meta import OwnerReference
from claimctl_reschedule.plan import facts
from claimctl_reschedule.plan.budgets import Budgets
from claimctl_reschedule.plan.fit import Volumes
from claimctl_reschedule.plan.policy import (
    DEFAULT_SCHEDULER,
    Evictor,
    NoEvictionPolicy,
    Policy,
    Protection,
)
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.world import World, WorldPod

_REPLACING = {
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("", "ReplicationController"),
}
"""The owners of which it is known that they make pods again."""
_ALLOWED_SOURCE = "api"


def replaces(owner: OwnerReference | None, evictor: Evictor) -> bool:
    """Whether it is known, or the policy or a WorkloadKind says, that it makes pods again."""
    if owner is None:
        return False
    kind = owner.api_version.rpartition("/")[0], owner.kind
    return kind in _REPLACING or kind in evictor.replacing_owners


@dataclass(frozen=True, slots=True)
class Protections:
    """One evictor's rules in one cluster. ``priority_threshold`` is its value; None without one."""

    evictor: Evictor
    policy: Policy
    world: World
    budgets: Budgets
    volumes: Volumes
    now: datetime
    priority_threshold: int | None = None
    _known: dict[str, Obstacle | None] = field(default_factory=dict)

    def obstacle(self, pod: WorldPod) -> Obstacle | None:
        """The first rule that forbids to move the pod."""
        if pod.uid not in self._known:
            self._known[pod.uid] = next(self._obstacles(pod), None)
        return self._known[pod.uid]

    def _obstacles(self, pod: WorldPod) -> Iterator[Obstacle]:
        rules = [self._never, self._by_wish]
        if pod.pod.metadata.annotation(facts.EVICT) is None:
            rules += [self._by_kind, self._by_use, self._by_scope]
        yield from (Obstacle(*obstacle) for rule in rules for obstacle in rule(pod))

    def _never(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        """Rules that nothing lifts."""
        meta, status = pod.pod.metadata, pod.pod.status
        owner = meta.controller()
        source = meta.annotation(facts.SOURCE)
        if meta.annotation(facts.MIRROR) is not None or (source and source != _ALLOWED_SOURCE):
            yield Ground.STATIC, ""
        if owner is not None and owner.kind == "Node":
            yield Ground.STATIC, ""
        if meta.deleting:
            yield Ground.TERMINATING, ""
        if not pod.pod.spec.node_name:
            yield Ground.NOT_SCHEDULED, ""
        if status.phase in TERMINAL_PHASES:
            yield Ground.FINISHED, status.phase
        scheduler = pod.pod.spec.scheduler_name or DEFAULT_SCHEDULER
        if scheduler != DEFAULT_SCHEDULER:
            yield Ground.UNKNOWN_SCHEDULER, scheduler
        if pod.uid in self.world.unreadable:
            yield Ground.UNREADABLE, self.world.unreadable[pod.uid]

    def _by_wish(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        meta = pod.pod.metadata
        if meta.annotation(facts.DO_NOT_DISRUPT) == "true":
            yield Ground.DO_NOT_DISRUPT, facts.DO_NOT_DISRUPT
        if meta.annotation(facts.SAFE_TO_EVICT) == "false":
            yield Ground.DO_NOT_DISRUPT, facts.SAFE_TO_EVICT
        mandatory = self.evictor.no_eviction_policy is NoEvictionPolicy.MANDATORY
        if mandatory and meta.annotation(facts.PREFER_NO_EVICTION) is not None:
            yield Ground.PREFERS_NO_EVICTION, ""

    def _by_kind(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        """Rules about what the pod is."""
        on, meta = self.evictor.protections, pod.pod.metadata
        priority, system = pod.pod.spec.priority or 0, self.policy.system_namespaces
        if Protection.SYSTEM_CRITICAL in on and facts.is_critical(pod.pod, system):
            yield Ground.CRITICAL, pod.pod.spec.priority_class_name or str(priority)
        owner = meta.controller()
        if owner is not None and owner.kind == "DaemonSet":
            if Protection.DAEMON_SETS in on:
                yield Ground.DAEMON_SET, owner.name
        elif not replaces(owner, self.evictor):
            yield Ground.NO_OWNER, f"{owner.kind} {owner.name}" if owner else ""
        if self.priority_threshold is not None and priority >= self.priority_threshold:
            yield Ground.PRIORITY, f"{priority} >= {self.priority_threshold}"

    def _by_use(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        """Rules about what the pod uses."""
        on = self.evictor.protections
        for volume in pod.pod.spec.volumes:
            local = volume.host_path is not None or volume.empty_dir is not None
            if local and Protection.LOCAL_STORAGE in on:
                yield Ground.LOCAL_STORAGE, f"volume {volume.name}"
        if Protection.VOLUME_CLAIMS in on:
            yield from self._by_volume_claims(pod)
        if Protection.RESOURCE_CLAIMS in on and (
            pod.pod.spec.resource_claims or claim_names(pod.pod)
        ):
            yield Ground.RESOURCE_CLAIM, ", ".join(sorted(claim_names(pod.pod)))
        if Protection.WITHOUT_BUDGET in on and not self.budgets.of(pod):
            yield Ground.NO_BUDGET, ""

    def _by_volume_claims(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        classes = self.evictor.protected_storage_classes
        for claim in self.volumes.claims_of(pod.pod):
            if not classes:
                yield Ground.VOLUME_CLAIM, claim.metadata.name if claim else ""
            elif claim is None or claim.spec.storage_class_name in classes:
                name = claim.spec.storage_class_name if claim else None
                yield Ground.STORAGE_CLASS, name or "unknown"

    def _by_scope(self, pod: WorldPod) -> Iterator[tuple[Ground, str]]:
        """Rules about the part of the cluster that the policy is for."""
        evictor = self.evictor
        if evictor.label_selector and not selects(evictor.label_selector, pod.labels):
            yield Ground.LABELS, ""
        namespace = self.world.namespaces.get(pod.namespace, {})
        chosen = evictor.namespace_label_selector
        if chosen and not selects(chosen, namespace):
            yield Ground.NAMESPACE_LABELS, pod.namespace
        if not self.selects_node(pod.node):
            yield Ground.NODE_NOT_SELECTED, pod.node
        siblings = len(self.world.by_owner.get(pod.owner_uid, ()))
        if pod.owner_uid and siblings < evictor.min_replicas:
            yield Ground.MIN_REPLICAS, f"{siblings} < {evictor.min_replicas}"
        started = pod.pod.status.start_time or pod.pod.metadata.creation_timestamp
        age = (self.now - started).total_seconds() if started else 0.0
        if age < evictor.min_pod_age_seconds:
            yield Ground.MIN_AGE, f"{age:.0f} s < {evictor.min_pod_age_seconds:.0f} s"

    def selects_node(self, name: str) -> bool:
        """Whether the policy's node selector takes the node in."""
        node, selector = self.world.nodes.get(name), self.policy.node_selector
        return selector is None or node is None or selects(selector, node.labels)
