"""The parts of a step: user actions, and waiting for their effects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from claimctl.downgrade import plans
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.claims import AllocationResult, Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import TOMBSTONE_GROUP, DowngradePlanSpec, DowngradePlanStatus
from claimctl.wire.resources import DOWNGRADEPLANS
from claimctl_demo.story import objects
from claimctl_demo.story.objects import DEPLOYMENT, NODE, Workload
from claimctl_demo.story.report import Figures
from claimctl_demo.story.stage import CONTROLLER, Stage, StoryFailed
from claimctl_witness.world import is_bound_consumer

TEMPLATE = "gpu"
START_SECONDS = 40.0

Count = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Acts:
    """User actions in one dialect, and waiting for their effects.

    Attributes:
        native: claimctl creates the claims from templates; otherwise the user creates them.
        groups: pods of held workloads share through a PodGroup that claimctl creates.
    """

    stage: Stage
    native: bool
    groups: bool = False

    # What is there

    def claim(self, workload: Workload) -> ResourceClaim | None:
        return self.stage.world.claims.get((workload.namespace, workload.claim))

    def allocation(self, workload: Workload) -> AllocationResult | None:
        claim = self.claim(workload)
        return claim.status.allocation if claim else None

    def references(self, workload: Workload) -> tuple[Reference, ...]:
        claim = self.claim(workload)
        return claim.status.reserved_for if claim else ()

    def workloads(self, workload: Workload) -> tuple[Reference, ...]:
        """The entries of the list that are neither pods nor tombstones."""
        return tuple(
            each
            for each in self.references(workload)
            if each.resource != "pods" and each.api_group != TOMBSTONE_GROUP
        )

    def device(self, workload: Workload) -> str:
        allocation = self.allocation(workload)
        results = (allocation.devices.results or ()) if allocation else ()
        return ", ".join(f"{each.pool}/{each.device}" for each in results)

    def pods(self, workload: Workload) -> list[Pod]:
        """Pods of the workload that use the claim and are not finished."""
        world = self.stage.world
        users = world.users_of((workload.namespace, workload.claim))
        return [pod for pod in users if pod.status.phase not in {"Succeeded", "Failed"}]

    def pods_of(self, namespace: str, name: str) -> list[Pod]:
        """The pods of a Deployment that are not being deleted, also finished ones."""
        return [
            pod
            for pod in self.stage.world.pods_in(namespace)
            if (pod.metadata.labels or {}).get("app") == name and not pod.metadata.deleting
        ]

    def running(self, namespace: str, name: str) -> list[Pod]:
        """The running pods of a Deployment."""
        return [pod for pod in self.pods_of(namespace, name) if _runs(pod)]

    def nodes(self, workload: Workload) -> set[str]:
        """The nodes of its pods; '' for a pod without one."""
        return {pod.spec.node_name for pod in self.pods(workload)}

    def succeeded(self, workload: Workload) -> int:
        users = self.stage.world.users_of((workload.namespace, workload.claim))
        return sum(pod.status.phase == "Succeeded" for pod in users)

    def all_run(self, workload: Workload) -> bool:
        pods = self.pods(workload)
        return len(pods) == workload.pods and all(_runs(pod) for pod in pods)

    # What a user does

    async def room(self, namespace: str) -> None:
        await self.stage.user.create(objects.namespace(namespace))
        if self.native:
            await self.stage.user.create(objects.claim_template(namespace, TEMPLATE))

    async def claim_made(self, namespace: str, name: str) -> None:
        """Create a claim as a user."""
        await self.stage.user.create(objects.claim(namespace, name, self.stage.resource_api))

    async def reserve(self, workload: Workload, kind: tuple[str, str], **spec: Any) -> None:
        """Ask claimctl to hold the claim; in ``native`` claimctl also creates it."""
        if not self.native:
            await self.claim_made(workload.namespace, workload.claim)
        if self.native or not workload.reserve:
            template = TEMPLATE if self.native else ""
            body = objects.reservation(workload, kind, template=template, **spec)
            await self.stage.user.create(body)

    async def create(self, workload: Workload, **spec: Any) -> None:
        await self.reserve(workload, DEPLOYMENT, **spec)
        await self.stage.user.create(objects.deployment(self.grouped(workload)))

    def grouped(self, workload: Workload, group: str = "") -> Workload:
        """The workload with its pods in a PodGroup: their own, or the one named ``group``."""
        return replace(workload, group=group or workload.name) if self.groups else workload

    async def change(self, workload: Workload, spec: dict[str, Any]) -> None:
        await self.stage.user.patch(DEPLOYMENT, workload.namespace, workload.name, {"spec": spec})

    async def all_free(self) -> None:
        """Wait until no claim has devices."""
        claims = self.stage.world.claims
        await self.stage.until(
            lambda: not any(each.status.allocation for each in claims.values()),
            "all devices are free",
            START_SECONDS,
        )

    async def node_names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in await self.stage.user.list(NODE))

    @asynccontextmanager
    async def only_node(self) -> AsyncIterator[str]:
        """Within the block, all nodes but one are cordoned; its name."""
        nodes = await self.node_names()
        for name in nodes[1:]:
            await self.stage.user.patch(NODE, "", name, {"spec": {"unschedulable": True}})
        try:
            yield nodes[0]
        finally:
            for name in nodes[1:]:
                await self.stage.user.patch(NODE, "", name, {"spec": {"unschedulable": None}})

    # What comes of it

    async def held(self, workload: Workload, **spec: Any) -> Figures:
        """Wait until all pods of the Deployment run and its claim is held."""
        counted = self.count(workload)
        await self.create(workload, **spec)
        await self.runs(workload)
        await self.held_again(workload)
        return counted()

    async def runs(self, workload: Workload) -> None:
        await self.stage.until(
            lambda: self.all_run(workload), f"{workload.pods} pods run", START_SECONDS
        )

    async def held_again(self, workload: Workload) -> None:
        """Wait until the list has the workload, and its pods if the dialect lists pods."""
        await self.stage.until(
            lambda: self._list_is_right(workload),
            "the claim lists the workload and its pods as they are",
        )

    async def recorded(self, workload: Workload) -> None:
        """Wait until a ClaimReservation says whose the entry in the list is.

        A downgrade leaves entries of unknown owners alone.
        """
        await self.stage.until(
            lambda: any(
                made.status.reserved_for is not None
                for made in self.stage.world.reservations.values()
                if made.metadata.namespace == workload.namespace
                and made.spec.resource_claim_name == workload.claim
            ),
            "the ClaimReservation reports the hold",
        )

    def _list_is_right(self, workload: Workload) -> bool:
        alive = (
            set()
            if self.native or self.groups
            else {pod.metadata.uid for pod in self.pods(workload)}
        )
        beside = {each.uid for each in self.references(workload)} - {
            each.uid for each in self.workloads(workload)
        }
        holders = 2 if self.groups else 1
        return beside == alive and len(self.workloads(workload)) == holders

    def expect_held(self, workload: Workload) -> None:
        if self.allocation(workload) is None or not self.workloads(workload):
            raise StoryFailed("the claim is not held any more")

    def expect_exactly_its_pods(self, workload: Workload) -> None:
        """Fail unless the list has exactly the live pods."""
        self.stage.look()
        listed = {each.uid for each in self.references(workload)}
        alive = {pod.metadata.uid for pod in self.pods(workload) if is_bound_consumer(pod)}
        if listed != alive or any(each.resource != "pods" for each in self.references(workload)):
            raise StoryFailed(f"{len(listed)} entries for {len(alive)} live pods")

    async def deallocated(self, workload: Workload) -> str:
        """Wait until the claim is deallocated; returns who did it."""
        witness, key = self.stage.witness, (workload.namespace, workload.claim)
        await self.stage.until(
            lambda: witness.losses[key] and self.allocation(workload) is None,
            "the claim is deallocated",
            START_SECONDS,
        )
        return who(witness.deallocations[key])

    async def settled_beside_finished(self, workload: Workload) -> None:
        """Wait until a pod has finished and kube-controller-manager (KCM) counts it as listed.

        KCM does so if the list has the pod's UID once, or the name of the pod's PodGroup.
        """

        def settled() -> bool:
            users = self.stage.world.users_of((workload.namespace, workload.claim))
            done = {pod.metadata.uid for pod in users if pod.status.phase == "Succeeded"}
            marks = {each.uid for each in self.references(workload) if each.resource != "pods"}
            return bool(done) and (self.groups or done <= marks)

        await self.stage.until(settled, "the finished pod is listed or of the group")

    async def full(self, workload: Workload) -> int:
        """Wait until 256 pods run and the ClaimReservation reports that the hold yielded."""

        def is_full() -> int:
            running = sum(_runs(pod) for pod in self.pods(workload))
            return running if running == LIMIT and self.has_reason(workload, "HoldYielded") else 0

        return await self.stage.until(is_full, f"{LIMIT} pods run, HoldYielded", START_SECONDS)

    def has_reason(self, workload: Workload, reason: str) -> bool:
        """Whether a ClaimReservation of the claim ever had this reason."""
        return reason in self.stage.witness.reasons[(workload.namespace, workload.claim)]

    # Measuring

    def count(self, workload: Workload) -> Count:
        """Start counting. Call the result to get the figures up to then."""
        key = (workload.namespace, workload.claim)
        before = self.stage.witness.writes[key]

        def counted() -> Figures:
            self.stage.look()
            return Figures(
                pods=len(self.pods(workload)),
                references=len(self.references(workload)),
                writes=self.stage.witness.writes[key] - before,
            )

        return counted

    @asynccontextmanager
    async def same_device(self, workload: Workload) -> AsyncIterator[Count]:
        """Fail if the claim loses its device within the block, even for a moment."""
        key = (workload.namespace, workload.claim)
        device, losses = self.device(workload), self.stage.witness.losses[key]
        yield self.count(workload)
        self.stage.look()
        if self.stage.witness.losses[key] != losses or self.device(workload) != device:
            raise StoryFailed(f"{device} was lost: now {self.device(workload) or 'nothing'}")

    async def revisions_within(self, workload: Workload, seconds: float) -> int:
        """How many times the claim is written within the next ``seconds``."""
        before = self.stage.witness.revisions[(workload.namespace, workload.claim)]
        await asyncio.sleep(seconds)
        self.stage.look()
        return self.stage.witness.revisions[(workload.namespace, workload.claim)] - before

    @asynccontextmanager
    async def plan(self, namespace: str) -> AsyncIterator[DowngradePlanStatus]:
        """Create a DowngradePlan, let the controller carry it out, and delete it afterwards."""
        client = self.stage.client
        plan = await plans.begin(client, DowngradePlanSpec(namespaces=(namespace,)))
        try:
            status = await plans.follow(client, plan, lambda _: None)
            await self.stage.look_closely()
            yield status
        finally:
            await client.delete(DOWNGRADEPLANS, plan.metadata.name)


def who(user: str) -> str:
    """The short name of a user of the API server."""
    return "claimctl" if user == CONTROLLER else user.removeprefix("system:")


def _runs(pod: Pod) -> bool:
    return pod.status.phase == "Running" and not pod.metadata.deleting
