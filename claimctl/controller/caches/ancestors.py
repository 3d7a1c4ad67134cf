"""The objects above a workload, as far as the caches show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from claimctl.controller.caches.chains import LONGEST, Chains, group_of, owner_in, read_object
from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.kinds import rules_by_kind
from claimctl.controller.keys import WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.reservation.facts.ancestors import OWN, Ancestor, Authority, who_decides
from claimctl.reservation.kinds.rules import Kind
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.resources import PODS, WORKLOADS


class Ancestry:
    """Says which objects are above a workload. A kind that claimctl does not watch holds nothing
    by annotation, and is left out."""

    def __init__(self, caches: Caches, chains: Chains) -> None:
        self._caches = caches
        self._chains = chains

    def who_decides(self, annotation: str, meta: ObjectMeta) -> Authority:
        """Whether the annotation counts on the object."""
        return who_decides(annotation, self.of(meta)) if meta.controller() is not None else OWN

    def of(self, meta: ObjectMeta) -> tuple[Ancestor, ...]:
        """The objects above, the nearest first."""
        above = (self._ancestor(owner, meta.namespace) for owner in self._owners(meta))
        return tuple(ancestor for ancestor in above if ancestor is not None)

    async def learn(self, client: Client, meta: ObjectMeta) -> None:
        """Read the pods above that no cache shows: those that use no claim. Raises KubeError."""
        discovery, namespace = Discovery(client), meta.namespace
        for owner in self._owners(meta):
            is_pod = (group_of(owner), owner.kind) == (PODS.group, PODS.kind)
            if is_pod and not self._chains.knows(owner, namespace):
                live = await read_object(client, discovery, owner, namespace)
                above = live.metadata.controller() if live is not None else None
                self._chains.remember(owner_in(namespace, owner), above)

    def _owners(self, meta: ObjectMeta) -> Iterator[OwnerReference]:
        owner, count = meta.controller(), 0
        while owner is not None and count < LONGEST:
            yield owner
            owner, count = self._chains.owner_of(owner, meta.namespace), count + 1

    def _ancestor(self, owner: OwnerReference, namespace: str) -> Ancestor | None:
        """The object that the reference names; None if claimctl does not watch its kind."""
        kind = (group_of(owner), owner.kind)
        key = WorkloadKey(*kind, namespace, owner.name)
        ancestor = Ancestor(*kind, owner.name, owner.uid, copies=self._copies(kind))
        state = self._caches.kinds.states.get(kind)
        if kind not in WORKLOADS:
            if state is None:
                return replace(ancestor, seen=False) if self._is_described(kind) else None
            if kind not in self._caches.workloads and not state.problem:
                return None
            if not state.problem and self._caches.kinds.is_awaited(kind):
                return replace(ancestor, seen=False)
            if problem := self._caches.kinds.problem(kind):
                return replace(ancestor, problem=problem, holds=self._is_held_for(key, owner.uid))
        workload = self._caches.workload(key)
        if workload is None or workload.metadata.uid != owner.uid:
            return replace(ancestor, seen=False)
        return replace(ancestor, annotations=workload.metadata.annotations or {})

    def _copies(self, kind: Kind) -> bool:
        state = self._caches.kinds.states.get(kind)
        rule = state.rule if state is not None else shipped_rules().get(kind)
        return rule is not None and rule.copies_annotations

    def _is_described(self, kind: Kind) -> bool:
        """Whether the kind has a rule, so that it is about to be watched if that is possible."""
        native = kind[0] in {group for group, _ in WORKLOADS}
        return (not native and kind in shipped_rules()) or kind in rules_by_kind(
            self._caches.kind_rules.items()
        )

    def _is_held_for(self, key: WorkloadKey, uid: str) -> bool:
        owners = (made.metadata.controller() for made in self._caches.reservations_for(key))
        return any(owner is not None and owner.uid == uid for owner in owners)
