"""The parts of a controller process that need the dialect, and how they are connected."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from claimctl.controller.caches.chains import Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.event_handlers import Queues, Triggers
from claimctl.controller.keys import ClaimKey, GroupKey, PlanKey, WorkloadKey, namespace_of
from claimctl.controller.kind_follower import KindFollower
from claimctl.controller.live_reads import Investigator
from claimctl.controller.node_leases import NodeLeases
from claimctl.controller.observations.observations import Observations
from claimctl.controller.reconcilers.claim import ClaimReconciler
from claimctl.controller.reconcilers.downgrade_plan import DowngradePlanReconciler
from claimctl.controller.reconcilers.pod_group import PodGroupReconciler
from claimctl.controller.reconcilers.workload import WorkloadReconciler
from claimctl.controller.settings import Duty, Settings
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.template_injection import Injector
from claimctl.controller.workers import Controller, Reconciler
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

K = TypeVar("K", ClaimKey, GroupKey, PlanKey, WorkloadKey)
Scoped = TypeVar("Scoped", ClaimKey, GroupKey, WorkloadKey)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a controller process: caches, triggers, queues with their reconcilers, and what
    runs beside them."""

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


def assemble(
    client: Client,
    settings: Settings,
    clock: Clock,
    telemetry: Telemetry,
    rng: random.Random,
    rules: Rules,
) -> Parts:
    """Make the parts and connect them: an event handler adds keys to the reconcilers' queues."""

    def controller(reconciler: Reconciler[K]) -> Controller[K]:
        name = reconciler.name
        queue: QueueRunner[K] = QueueRunner(
            clock, name=name, telemetry=telemetry, rng=rng, tenant_of=namespace_of
        )
        return Controller(queue, reconciler, clock, telemetry)

    def in_scope(add: Callable[[Scoped], None]) -> Callable[[Scoped], None]:
        """Add only the keys of the namespaces that this process reconciles."""

        def add_if_wanted(key: Scoped) -> None:
            if not settings.namespaces or key.namespace in settings.namespaces:
                add(key)

        return add_if_wanted

    caches = Caches(client, clock, rng)
    observations = Observations(clock, rules.one_pod_drivers)
    investigator = Investigator(client, caches.pods, caches.kinds)
    knowledge = Knowledge(caches, observations, investigator, clock, rules)
    events = EventRecorder(client, clock, COMPONENT, settings.identity)
    climber = Climber(client, knowledge.chains)
    allowed = settings.allow_template_injection
    injector = Injector(client, knowledge, events, allowed=allowed)
    claims = controller(ClaimReconciler(client, knowledge, events, telemetry))
    workloads = controller(WorkloadReconciler(client, knowledge, events, climber, injector))
    stays = settings.duty is not Duty.PLAN
    plans = controller(DowngradePlanReconciler(client, knowledge, stays=stays))
    groups = controller(PodGroupReconciler(client, knowledge, events))
    batch = settings.batch_seconds
    queues = Queues(
        claims=in_scope(partial(claims.queue.add, delay=batch)),
        soon=in_scope(partial(claims.queue.add, delay=min(SOON_SECONDS, batch))),
        urgent=in_scope(claims.queue.add),
        workloads=in_scope(workloads.queue.add),
        plans=plans.queue.add,
        groups=in_scope(partial(groups.queue.add, delay=batch)),
        new_groups=in_scope(groups.queue.add),
    )
    triggers = Triggers(caches, observations, queues, climber)
    climber.resolved = triggers.owner_known
    kinds = KindFollower(client, caches, clock, triggers.kinds_changed, triggers.leads)
    leases = NodeLeases(client, clock, observations, triggers.ghost_changed)
    return Parts(
        caches, triggers, events, claims, workloads, plans, groups, leases, knowledge, kinds
    )
