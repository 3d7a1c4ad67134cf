"""Workloads of any kind, read live for one command: their kinds, their owners, their states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from claimctl.cli.errors import UsageError
from claimctl.controller.caches.chains import group_of, read_object
from claimctl.controller.caches.kinds import KindState, rules_by_kind, state_of
from claimctl.controller.children import children_left
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, KubeError, UnreadableObject
from claimctl.live_objects import list_if_served
from claimctl.reservation.facts.ancestors import Ancestor, Authority, who_decides
from claimctl.reservation.facts.ordinals import for_ordinal
from claimctl.reservation.facts.workloads import (
    WorkloadState,
    custom_state,
    judged,
    unknown_state,
    with_children,
)
from claimctl.reservation.kinds.rules import Kind, Rule
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import WORKLOADKINDS, WORKLOADS, Resource
from claimctl.wire.workload_kinds import WorkloadKind

LONGEST_CHAIN = 12


class KindReader:
    """Reads each kind and each owner once. A kind that the user may not read ends a chain."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._documents: dict[Kind, WorkloadKind] | None = None
        self._states: dict[Kind, KindState] = {}
        self._owners: dict[tuple[str, str, str], OwnerReference | None] = {}
        """By namespace, name and UID of the object, as a reference to it says."""

    # -- kinds and their rules

    async def state(self, kind: Kind) -> KindState:
        """What is known of the kind. The user's rights are not asked for. Raises KubeError."""
        if kind not in self._states:
            self._states[kind] = await state_of(
                self._client, self._discovery, kind, await self.rules()
            )
        return self._states[kind]

    async def rules(self) -> dict[Kind, WorkloadKind]:
        """The users' WorkloadKinds by kind; none if the user may not list them."""
        if self._documents is None:
            try:
                listed = await list_if_served(self._client, WORKLOADKINDS)
                self._documents = rules_by_kind(listed.items)
            except Forbidden:
                self._documents = {}
        return self._documents

    async def served(self) -> tuple[KindState, ...]:
        """The kinds with a rule that the cluster serves and whose annotations are looked at, apart
        from those that claimctl reads without a rule. Raises KubeError."""
        native = {group for group, _ in WORKLOADS}
        documents = await self.rules()
        kinds = {kind for kind in shipped_rules() if kind[0] not in native} | documents.keys()
        states = [await self.state(kind) for kind in sorted(kinds - WORKLOADS.keys())]
        return tuple(state for state in states if state.resource is not None and not state.problem)

    async def named(self, word: str) -> Kind | None:
        """The kind that a word names: ``jobset``, ``jobsets``, or with its group behind a dot."""
        name, _, group = word.lower().partition(".")
        for kind, plural in sorted((await self._plurals()).items()):
            if name in (kind[1].lower(), plural) and group in ("", kind[0]):
                return kind
        return None

    async def _plurals(self) -> dict[Kind, str]:
        """The resource names of all kinds for which there is a rule."""
        names = {kind: made.metadata.name for kind, made in (await self.rules()).items()}
        shipped = {kind: rule.plural for kind, rule in shipped_rules().items()}
        return shipped | {kind: name.partition(".")[0] for kind, name in names.items()}

    async def required(
        self, word: str, also: tuple[str, ...] = ()
    ) -> tuple[Resource[Any], Rule | None]:
        """The resource of the kind that a word names, and its rule if its pod template is not read.

        Args:
            also: kinds that the command takes and that are no workloads.

        Raises:
            UsageError: there is no rule for such a kind, or it cannot be used.
        """
        for known in WORKLOADS.values():
            if known.kind == word:
                return known, None
        kind = await self.named(word)
        if kind is None:
            ruled = sorted({kind.lower() for _, kind in await self._plurals()})
            names = ", ".join((*also, *ruled))
            raise UsageError(
                f"{word!r}: claimctl knows no such kind; there are: {names}; a WorkloadKind adds "
                "another"
            )
        state = await self.state(kind)
        if state.problem or state.resource is None:
            raise UsageError(f"{word!r}: {state.problem}")
        return state.resource, state.rule

    async def of_resource(self, group: str, plural: str) -> Kind | None:
        """The kind of a resource for which there is a rule."""
        ruled = {(kind[0], name): kind for kind, name in (await self._plurals()).items()}
        return ruled.get((group, plural))

    # -- owners

    def know(self, metas: Iterable[ObjectMeta]) -> None:
        """Note the controllers of objects that were read anyway."""
        self._owners.update({(*meta.key, meta.uid): meta.controller() for meta in metas})

    async def chain(self, pod: Pod) -> tuple[OwnerReference, ...]:
        """The controllers of a pod, the nearest first, as far as the user may read them."""
        owners: list[OwnerReference] = []
        owner, namespace = pod.metadata.controller(), pod.metadata.namespace
        while owner is not None and len(owners) < LONGEST_CHAIN:
            owners.append(owner)
            key = (namespace, owner.name, owner.uid)
            if key not in self._owners:
                live = await self._read(owner, namespace)
                self._owners[key] = live.metadata.controller() if live is not None else None
            owner = self._owners[key]
        return tuple(owners)

    async def under(self, uid: str, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Those pods whose chain of controllers leads to an object."""
        return tuple([pod for pod in pods if uid in {owner.uid for owner in await self.chain(pod)}])

    async def who_decides(self, annotation: str, meta: ObjectMeta) -> Authority:
        """Whether the annotation counts on an object, as far as the user may read those above."""
        above, owner = list[Ancestor](), meta.controller()
        for _ in range(LONGEST_CHAIN):
            if owner is None:
                break
            live = await self._read(owner, meta.namespace)
            if (rule := await self._annotated_rule((group_of(owner), owner.kind))) is not None:
                above.append(_ancestor(rule, owner, live))
            owner = live.metadata.controller() if live is not None else None
        return who_decides(annotation, above)

    async def _read(self, owner: OwnerReference, namespace: str) -> ObjectHeader | None:
        """The owner; None if it is gone, or if the user may not read it."""
        try:
            return await read_object(self._client, self._discovery, owner, namespace)
        except KubeError:
            return None

    async def _annotated_rule(self, kind: Kind) -> Rule | None:
        """The rule of a kind whose annotations are looked at; None for other kinds."""
        if kind in WORKLOADS:
            return shipped_rules()[kind]
        return next((it.rule for it in await self.served() if it.rule.key == kind), None)

    # -- workloads

    async def workload(
        self, reservation: ClaimReservation, pods: Iterable[Pod]
    ) -> tuple[WorkloadState, Resource[Any] | None]:
        """The state of a reservation's workload by the rule of its kind, and its resource.

        Args:
            pods: those that name the claim.

        Raises:
            KubeError: a request failed.
        """
        ref, namespace = reservation.spec.workload_ref, reservation.metadata.namespace
        kind = await self.state((ref.api_group, ref.kind))
        if kind.problem or kind.resource is None:
            return unknown_state(kind.rule, kind.problem), kind.resource
        try:
            live = await self._client.find(kind.resource, ref.name, namespace)
        except (Forbidden, UnreadableObject) as error:
            return unknown_state(kind.rule, str(error)), kind.resource
        workload = judged(live, kind.rule) if live is not None else None
        makers = await self._makers(live.metadata.uid, pods) if live is not None else frozenset()
        reference = reservation.status.reserved_for
        recorded = reference.uid if reference is not None else ""
        held_for = (recorded, reservation.metadata.uid)
        state, left = custom_state(kind.rule, workload, makers, held_for, confirmed=True), None
        state = for_ordinal(state, workload, reservation.spec)
        root = state.uid or recorded
        if state.is_over and root and kind.rule.children:
            stays = state.exists and not state.deleting
            claim = "" if stays else reservation.spec.resource_claim_name
            left = await self._children(kind, namespace, root, claim)
        return with_children(kind.rule, state, recorded, left), kind.resource

    async def _makers(self, uid: str, pods: Iterable[Pod]) -> frozenset[str]:
        """UIDs of the direct controllers of the workload's pods."""
        chains = [await self.chain(pod) for pod in pods]
        return frozenset(chain[0].uid for chain in chains if uid in {it.uid for it in chain})

    async def _children(
        self, kind: KindState, namespace: str, root: str, claim: str
    ) -> tuple[str, ...] | str:
        """The children of a workload that may still make pods, or why they cannot be read."""
        for child in kind.rule.children:
            await self.state(child)
        try:
            return await children_left(
                self._client, self._states, kind, namespace, root, orphans_with=claim
            )
        except (Forbidden, UnreadableObject) as error:
            return str(error)


def _ancestor(rule: Rule, owner: OwnerReference, live: ObjectHeader | None) -> Ancestor:
    """An owner of a kind whose annotations are looked at; ``live`` is None if it was not read."""
    ancestor = Ancestor(*rule.key, owner.name, owner.uid, copies=rule.copies_annotations)
    if live is None:
        return replace(ancestor, problem=f"you cannot read {owner.kind} {owner.name}")
    return replace(ancestor, annotations=live.metadata.annotations or {})
