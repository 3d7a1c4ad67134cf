"""Follows the kinds of workloads that the cluster serves, by their rules.

A kind is followed while the cluster serves it and the controller may read it. Kinds of Kubernetes
itself are followed only while a ClaimReservation or a WorkloadKind names them. The follower looks
again when a watch reconnects, when a WorkloadKind changes, when a ClaimReservation names a new
kind, and when a pod with a claim is owned by a kind that was not served. It polls only while a
ClaimReservation names a kind that cannot be read, and, with one question a kind, while it lacks the
right to read a kind that is served: nothing else tells that somebody has granted the right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from math import inf

from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.kinds import (
    VERBS,
    KindState,
    forbidden_verbs,
    rules_by_kind,
    state_of,
    unserved,
)
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Conflict, Forbidden, KubeError, NotFound
from claimctl.kube.informer import Change
from claimctl.kube.supervisor import Tasks
from claimctl.parallel import wait_for
from claimctl.reservation.kinds.rules import Kind
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.telemetry.face import LateLogger
from claimctl.wire.fitted import fitted, status_body
from claimctl.wire.meta import Condition, renewed
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import WORKLOADKINDS, WORKLOADS, Resource
from claimctl.wire.seams import Clock
from claimctl.wire.workload_kinds import WorkloadKind, WorkloadKindStatus
from claimctl.wire.workloads import CustomWorkload

log = LateLogger(__name__)

PAUSE = 1.0
"""Seconds to wait before a look, so that several changes cause one."""
FIRST_LISTS = 10.0
"""The longest wait for what is known of kinds, in seconds, before a controller begins."""
RETRY = 30.0
RIGHTS = 10.0
"""Seconds between two questions whether a missing right is there now."""
LOOKS = 3
"""How often to look for a kind that owns pods: discovery tells of a new kind some seconds late."""


class KindFollower:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        clock: Clock,
        looked: Callable[[], None],
        leads: Callable[[], bool],
    ) -> None:
        """``looked`` is called when the state of a kind has changed. The leader alone writes."""
        self._leads = leads
        self._client = client
        self._caches = caches
        self._clock = clock
        self._looked = looked
        self._forbidden = False
        self._wake = asyncio.Event()
        self._looks_left: dict[Kind, int] = {}
        """For kinds that own pods and were not served."""
        caches.claims.on_connect(self._begin_anew)
        caches.kinds.seen_unserved = self._seen_unserved
        caches.kind_rules.subscribe(self._rule)
        caches.reservations.subscribe(self._reservation)

    def _rule(self, change: Change[WorkloadKind]) -> None:
        if change.old is None or change.new is None or change.old.spec != change.new.spec:
            self._wake.set()

    def _reservation(self, change: Change[ClaimReservation]) -> None:
        known = WORKLOADS.keys() | self._caches.kinds.states.keys()
        if change.new is not None and kind_of(change.new) not in known:
            self._wake.set()

    def _begin_anew(self) -> None:
        self._looks_left.clear()
        self._wake.set()

    def _seen_unserved(self, kind: Kind) -> None:
        if kind not in self._looks_left:
            self._looks_left[kind] = LOOKS
            self._wake.set()

    async def begin(self, tasks: Tasks) -> None:
        """Look at the kinds that ClaimReservations name, and wait for the first lists.

        Until then the state of their workloads is unknown, and a status that says so forgets since
        when they are idle. An API server that fails, or takes long, ends the wait.
        """
        reserved = self._reserved()
        if not reserved:
            return
        try:
            async with asyncio.timeout(FIRST_LISTS):
                await self.look(tasks)
                for informer in self._caches.kinds.informers():
                    if (informer.resource.group, informer.resource.kind) in reserved:
                        await informer.wait_synced()
        except (KubeError, TimeoutError) as error:
            log.warning("kinds of workloads are not known yet", error=str(error))

    async def run(self, tasks: Tasks) -> None:
        """Follow the kinds until cancelled. ``tasks`` runs the informers."""
        while True:
            await self._clock.sleep(PAUSE)
            self._wake.clear()
            try:
                await self.look(tasks)
            except KubeError as error:
                log.warning("cannot look at the kinds of workloads", error=str(error))
                await self._clock.sleep(RETRY)
                continue
            self._looks_left = {
                kind: max(left - 1, 0)
                for kind, left in self._looks_left.items()
                if kind in self._caches.kinds.states
                and self._caches.kinds.states[kind].resource is None
            }
            unread = any(self._looks_left.values()) or any(
                self._caches.kinds.problem(kind) for kind in self._reserved()
            )
            await self._rest(RETRY if unread else inf)

    async def _rest(self, seconds: float) -> None:
        """Wait for a change, for a right that was missing, and for at most so many seconds."""
        left = seconds
        while not self._wake.is_set() and left > 0:
            forbidden = self._forbidden_kinds()
            pause = min(left, RIGHTS if forbidden else inf)
            await wait_for(self._wake, None if pause == inf else pause)
            left -= pause
            if not self._wake.is_set() and await self._is_any_granted(forbidden):
                return

    def _forbidden_kinds(self) -> list[Resource[CustomWorkload]]:
        """The kinds that the cluster serves and that this controller may not read."""
        states = self._caches.kinds.states.values()
        return [state.resource for state in states if state.resource and state.forbidden]

    async def _is_any_granted(self, kinds: Iterable[Resource[CustomWorkload]]) -> bool:
        try:
            for kind in kinds:
                async for _ in forbidden_verbs(self._client, kind, VERBS):
                    break
                else:
                    return True
        except KubeError as error:
            log.info("cannot ask for rights", error=str(error))
        return False

    async def look(self, tasks: Tasks) -> None:
        """Look once at every kind, and follow those that can be followed. Raises KubeError."""
        discovery, kinds = Discovery(self._client), self._caches.kinds
        rules = self._rules()
        states = {
            kind: await state_of(self._client, discovery, kind, rules, VERBS)
            for kind in self._wanted()
        }
        for kind in [kind for kind in kinds.states if kind not in states]:
            if kinds.states[kind].resource is None:
                # nothing names the kind, and it has no cache
                del kinds.states[kind]
            else:
                states[kind] = replace(kinds.states[kind], resource=None, problem=unserved(kind))
        changed, unused, named = False, list[str](), self._reserved() | self._rules().keys()
        for kind, state in states.items():
            if kinds.states.get(kind) == state:
                continue
            changed = True
            task = f"informer of {kind[1]}.{kind[0]}"
            await tasks.stop(task, deadline=1.0)
            if state.problem or not self._is_needed(kind):
                kinds.leave(state)
            else:
                tasks.spawn(task, kinds.follow(state).run())
            if state.resource is None and kind not in named:
                unused.append(f"{kind[1]}.{kind[0]}")
            else:
                log.info("kind of workloads", kind=kind[1], group=kind[0], problem=state.problem)
        if unused:
            log.info("kinds of workloads that the cluster does not serve", kinds=unused)
        if changed:
            self._looked()
        await self._write_statuses()

    async def _write_statuses(self) -> None:
        """Say in document WorkloadKind what became of its kind."""
        for document in self._caches.kind_rules.items() if self._leads() else ():
            kind, meta = (document.spec.group, document.spec.kind), document.metadata
            state = self._caches.kinds.states.get(kind)
            status = fitted(status_of(document, state, self._clock.now()))
            if status == document.status:
                continue
            body = {"status": status_body(status)}
            try:
                await self._client.merge_patch(WORKLOADKINDS, meta, body, subresource="status")
            except (Conflict, NotFound):
                continue
            except Forbidden as error:
                # a controller of some namespaces has no right to write outside them
                if not self._forbidden:
                    self._forbidden = True
                    log.warning("statuses of WorkloadKinds are not written", error=str(error))

    def _is_needed(self, kind: Kind) -> bool:
        """Whether workloads of the kind are watched: kinds of Kubernetes itself are in every
        cluster, mostly without claims."""
        native = kind[0] in {group for group, _ in WORKLOADS}
        return not native or kind in self._reserved() or kind in self._rules()

    def _wanted(self) -> list[Kind]:
        kinds = {*shipped_rules(), *self._rules(), *self._reserved()}
        return sorted(filter(self._is_needed, kinds - WORKLOADS.keys()))

    def _rules(self) -> dict[Kind, WorkloadKind]:
        return rules_by_kind(self._caches.kind_rules.items())

    def _reserved(self) -> set[Kind]:
        kinds = {kind_of(reservation) for reservation in self._caches.reservations.items()}
        return kinds - WORKLOADS.keys()


def status_of(document: WorkloadKind, state: KindState | None, now: datetime) -> WorkloadKindStatus:
    """The status of a WorkloadKind. A time in it changes only with its condition's status."""
    problem = f"{document.spec.kind} has a rule of its own, which cannot be replaced"
    if (document.spec.group, document.spec.kind) not in WORKLOADS:
        problem = state.problem if state is not None else "not looked at yet"
    if state is not None and state.rule.source != f"WorkloadKind {document.metadata.name}":
        problem = f"{state.rule.source} describes the same kind"
    resource = state.resource if state is not None else None
    ready = Condition(
        type="Ready",
        status="False" if problem else "True",
        observed_generation=document.metadata.generation,
        reason="RuleUnusable" if problem else "RuleInUse",
        message=problem or "claims are held for workloads of this kind",
    )
    return WorkloadKindStatus(
        observed_generation=document.metadata.generation,
        served=resource is not None,
        version=resource.version if resource is not None else "",
        permitted=resource is not None and not problem,
        conditions=(renewed(ready, document.status.conditions, now),),
    )


def kind_of(reservation: ClaimReservation) -> Kind:
    ref = reservation.spec.workload_ref
    return ref.api_group, ref.kind
