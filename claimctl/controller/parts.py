"""The parts of a controller process that need the dialect, and how they are connected."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from claimctl.controller.caches.informers import Caches
from claimctl.controller.climbing import Climber
from claimctl.controller.event_handlers import Queues, Triggers
from claimctl.controller.keys import ClaimKey, GroupKey, PlanKey, WorkloadKey
from claimctl.controller.kind_follower import KindFollower
from claimctl.controller.live_reads import Investigator
from claimctl.controller.node_leases import NodeLeases
from claimctl.controller.observations.observations import Observations
from claimctl.controller.reconcilers.claim import ClaimReconciler
from claimctl.controller.reconcilers.downgrade_plan import DowngradePlanReconciler
from claimctl.controller.reconcilers.pod_group import PodGroupReconciler
from claimctl.controller.reconcilers.workload import WorkloadReconciler
from claimctl.controller.settings import Settings
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.template_injection import Injector
from claimctl.controller.workers import Controller, Named, Reconciler
from claimctl.kube.client import Client
from claimctl.kube.events import EventRecorder
from claimctl.kube.queue import QueueRunner
from claimctl.reservation.facts.snapshot import Rules
from claimctl.telemetry.face import Telemetry
from claimctl.wire.seams import Clock

SOON_SECONDS = 0.05
"""The batch window for pods that come and may be listed ahead, in seconds. The scheduler begins to
schedule them at once."""

COMPONENT = "claimctl.io/controller"
"""The reportingController of Events."""

K = TypeVar("K", bound=Named)
Scoped = TypeVar("Scoped", ClaimKey, GroupKey, WorkloadKey)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a controller process: caches, observations, queues and reconcilers."""

    caches: Caches
    triggers: Triggers
    events: EventRecorder
    claims: Controller[ClaimKey]
    workloads: Controller[WorkloadKey]
    plans: Controller[PlanKey]
    groups: Controller[GroupKey]
    node_leases: NodeLeases
    knowledge: Knowledge
    kinds: KindFollower


@dataclass(frozen=True, slots=True)
class Assembly:
    """Makes the parts and connects them: an event handler adds keys to the reconcilers' queues."""

    client: Client
    settings: Settings
    clock: Clock
    telemetry: Telemetry
    rng: random.Random

    def parts(self, rules: Rules) -> Parts:
        caches = Caches(self.client, self.clock, self.rng)
        observations = Observations(self.clock)
        investigator = Investigator(self.client, caches.pods, caches.kinds)
        knowledge = Knowledge(caches, observations, investigator, self.clock, rules)
        events = EventRecorder(self.client, self.clock, COMPONENT, self.settings.identity)
        claims = self._controller(ClaimReconciler(self.client, knowledge, events, self.telemetry))
        climber = Climber(self.client, knowledge.chains)
        workloads = self._controller(self._workloads(knowledge, events, climber))
        plans = self._controller(DowngradePlanReconciler(self.client, knowledge))
        groups = self._controller(PodGroupReconciler(self.client, knowledge, events))
        batch = self.settings.batch_seconds
        queues = Queues(
            claims=self._in_scope(partial(claims.queue.add, delay=batch)),
            workloads=self._in_scope(workloads.queue.add),
            plans=plans.queue.add,
            groups=self._in_scope(partial(groups.queue.add, delay=batch)),
            new_groups=self._in_scope(groups.queue.add),
            urgent=self._in_scope(claims.queue.add),
            soon=self._in_scope(partial(claims.queue.add, delay=min(SOON_SECONDS, batch))),
        )
        triggers = Triggers(caches, observations, queues, climber)
        climber.resolved = triggers.owner_known
        kinds = KindFollower(
            self.client, caches, self.clock, triggers.kinds_changed, triggers.leads
        )
        leases = NodeLeases(self.client, self.clock, observations, triggers.ghost_changed)
        return Parts(
            caches,
            triggers,
            events,
            claims,
            workloads,
            plans,
            groups,
            leases,
            knowledge,
            kinds,
        )

    def _in_scope(self, add: Callable[[Scoped], None]) -> Callable[[Scoped], None]:
        """Add only the keys of the namespaces that this process reconciles."""
        wanted = self.settings.namespaces

        def add_if_wanted(key: Scoped) -> None:
            if key.namespace in wanted:
                add(key)

        return add_if_wanted if wanted else add

    def _workloads(
        self, knowledge: Knowledge, events: EventRecorder, climber: Climber
    ) -> WorkloadReconciler:
        allowed = self.settings.allow_template_injection
        injector = Injector(self.client, knowledge, events, allowed=allowed)
        own_writes = knowledge.observations.own_writes
        caches = knowledge.caches
        return WorkloadReconciler(self.client, caches, own_writes, events, injector, climber)

    def _controller(self, reconciler: Reconciler[K]) -> Controller[K]:
        queue: QueueRunner[K] = QueueRunner(
            self.clock, name=reconciler.name, telemetry=self.telemetry, rng=self.rng
        )
        return Controller(queue, reconciler, self.clock, self.telemetry)
