"""User actions in one place: of users, administrators and nodes, and of a foreign writer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from kube_in_process.real.client import Version
from kube_in_process.real.servers.nodes import NODE
from kube_in_process.real.servers.pod_worker import POD

from claimctl.wire.base import Object
from labs.torture.bodies import RESERVATION, App
from labs.torture.drivers import results_of
from labs.torture.place import TROUBLE, TorturePlace
from labs.torture.stored import Line, meddled

KINDS = ("Deployment", "StatefulSet", "Job")
POLICIES = ("WhileRunning", "WhileRunning", "WhileRunning", "Persistent", "Manual")
PATIENCE = 20.0
"""Seconds after which users give an action up."""
Action = Callable[[], Coroutine[Any, Any, None]]


class Nothing(Exception):
    """The action is impossible now: its object does not exist."""


@dataclass
class UserActions:
    """Each method is one action. An action that is impossible now does nothing.

    Where requests take no time, neither does an action, unless it sleeps.
    """

    place: TorturePlace
    rng: Random
    apps: list[App] = field(default_factory=list)
    log: list[Line] = field(default_factory=list)
    """Time and text of each action."""
    done: int = 0
    """How many actions came to their end."""

    async def act(self) -> None:
        await self.attempt(self.rng.choice(self.actions()))

    async def attempt(self, action: Action) -> None:
        """Do an action and record its result."""
        self.log.append((self.place.now(), action.__name__))
        try:
            async with asyncio.timeout(PATIENCE):
                await action()
            self.done += 1
        except Nothing as nothing:
            self._add(f": {nothing}")
        except TROUBLE as error:
            self._add(f": {str(error)[:120] or type(error).__name__}")

    def _add(self, text: str) -> None:
        at, before = self.log[-1]
        self.log[-1] = (at, before + text)

    def actions(self) -> list[Action]:
        return [
            *[self.scale] * 6,
            *[self.delete_pod] * 2,
            *[self.force_delete] * 2,
            *[self.vanish] * 2,
            *[self.recreate] * 2,
            self.create,
            self.delete,
            self.restart,
            self.evict,
            self.delete_claim,
            self.withdraw,
            self.reserve,
            self.ask_for_release,
            self.annotate,
            self.cordon,
            self.lose_node,
            self.reboot_node,
            *[self.restore_node] * 2,
            self.taint,
            *[self.break_device] * 2,
            self.disturb_device,
            *[self.change_mind] * 2,
            self.come_elsewhere,
            *[self.meddle] * 2,
        ]

    # -- users

    def choose(self) -> None:
        """Draw two workloads that may share a claim, and sometimes a third with its own."""
        kinds = self.rng.sample(KINDS, self.rng.choice([1, 1, 2]))
        self.apps = [self._app(kind, "slice") for kind in kinds]
        if self.rng.random() < 0.3:
            kind = self.rng.choice(KINDS)
            claim = self.rng.choice(["other", "other", ""])
            self.apps.append(replace(self._app(kind, claim), name="side", annotated=bool(claim)))

    def _app(self, kind: str, claim: str) -> App:
        job: Object = {"completionMode": self.rng.choice(["NonIndexed", "Indexed"])}
        job["suspend"] = self.rng.random() < 0.2
        shared = self.place.pod_groups and self.rng.random() < 0.8
        return App(
            kind=kind,
            name="train",
            claim=claim,
            group=f"train-{kind.lower()}" if shared and claim else "",
            policy=self.rng.choice(POLICIES),
            annotated=self.rng.random() < 0.25,
            job=job,
            seconds=self.rng.choice(["1", "5", "30"]),
            exit_code=self.rng.choice(["0", "0", "1"]),
        )

    async def begin(self) -> None:
        """Create the first objects."""
        self.choose()
        bodies = self.place.bodies
        await self.place.client.create(bodies.claim_template())
        for name in sorted({app.claim for app in self.apps if app.claim}):
            annotated = all(app.annotated for app in self.apps if app.claim == name)
            if annotated or self.rng.random() < 0.3:
                await self.place.client.create(bodies.claim(name))
        for app in self.apps:
            if app.claim and not app.annotated:
                await self._reserve(app)
            await self._create(app)

    async def _reserve(self, app: App) -> None:
        await self.place.client.create(self._reservation(app))

    def _reservation(self, app: App) -> Object:
        return self.place.bodies.reservation(app, template=self.rng.random() < 0.7)

    async def _create(self, app: App) -> None:
        pods = app.at_most(self.rng.choice([0, 1, 2, 3]))
        self._add(f" {app.kind} of {pods}")
        await self.place.client.create(self._workload(app, pods))

    def _workload(self, app: App, pods: int) -> Object:
        return self.place.bodies.workload(app, pods)

    async def create(self) -> None:
        await self._create(self._one())

    async def scale(self) -> None:
        app = self._one()
        pods = app.at_most(self.rng.choice([0, 0, 1, 2, 4]))
        self._add(f" {app.kind} to {pods}")
        await self._want(app, pods)

    async def _want(self, app: App, pods: int) -> None:
        spec = {"suspend": not pods} if app.kind == "Job" else {"replicas": pods}
        await self._patch(app.version, app.name, {"spec": spec})

    async def restart(self) -> None:
        app, note = self._one(), {"restarted": str(self.rng.random())}
        template = {"metadata": {"annotations": note}}
        await self._patch(app.version, app.name, {"spec": {"template": template}})

    async def delete(self) -> None:
        await self._delete_app(self._one())

    async def _delete_app(self, app: App) -> None:
        cascade = self.rng.choice(["Background", "Background", "Foreground", "Orphan"])
        self._add(f" {app.kind} {cascade}")
        await self._delete(app.version, app.name, propagationPolicy=cascade)

    async def recreate(self) -> None:
        """Delete a workload without waiting for its pods, and create it again under its name."""
        app = self._one()
        await self._delete_app(app)
        await self._create(app)

    async def delete_pod(self) -> None:
        await self._delete(POD, self._any("pods"))

    async def force_delete(self) -> None:
        await self._delete(POD, self._any("pods"), gracePeriodSeconds=0)

    async def vanish(self) -> None:
        """Force-delete all pods of a workload, and let it want no new ones."""
        app = self._one()
        for pod in self.place.objects("pods"):
            if (pod["metadata"].get("labels") or {}).get("app") == app.name:
                await self._delete(POD, pod["metadata"]["name"], gracePeriodSeconds=0)
        await self._want(app, 0)

    async def evict(self) -> None:
        name = self._any("pods")
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self.place.client.post(POD, self.place.namespace, name, "eviction", body)

    async def delete_claim(self) -> None:
        await self._delete(self._claims, "slice")

    async def withdraw(self) -> None:
        await self._delete(RESERVATION, self._any("claimreservations"))

    async def reserve(self) -> None:
        app = replace(self._one(), policy=self.rng.choice(POLICIES))
        if app.claim:
            await self._reserve(app)

    async def ask_for_release(self) -> None:
        """Ask for a release as ``claimctl release`` does."""
        asked = {"claimctl.io/release": self._shared()["metadata"]["uid"]}
        name = self._any("claimreservations")
        await self._patch(RESERVATION, name, {"metadata": {"annotations": asked}})

    async def annotate(self) -> None:
        app, value = self._one(), self.rng.choice(["*", "slice", None])
        self._add(f" {value}")
        note = {"claimctl.io/reserve": value}
        await self._patch(app.version, app.name, {"metadata": {"annotations": note}})

    async def change_mind(self) -> None:
        """Withdraw a reservation, and perhaps reserve the claim again."""
        await self.withdraw()
        await self.place.sleep(self.rng.choice([0.0, 0.5, 3.0]))
        if self.rng.random() < 0.5:
            await self.reserve()

    async def come_elsewhere(self) -> None:
        """Create a pod of nobody's that needs the shared claim on one of the nodes."""
        spec = {
            **self.place.bodies.pod_spec(App("Deployment", "stranger", "slice")),
            "nodeSelector": {"kubernetes.io/hostname": self._node()},
        }
        name = f"stranger-{self.rng.randrange(10**6)}"
        meta = {"name": name, "namespace": self.place.namespace}
        head = {"apiVersion": POD[0], "kind": POD[1]}
        await self.place.client.create({**head, "metadata": meta, "spec": spec})

    # -- devices

    async def taint(self) -> None:
        """Taint all devices of a node, or remove their taints."""
        effect = self.rng.choice(["NoSchedule", "NoExecute", ""])
        self._add(f" {effect or 'none'}")
        await self.place.taint(self._node(), effect)

    async def break_device(self) -> None:
        """Taint the devices of the shared claim, in their slice or by a rule: its pods must go."""
        for device in results_of(self._shared()):
            rule = self.rng.random() < 0.5
            self._add(f" {device['pool']}/{device['device']}{' by a rule' if rule else ''}")
            if rule:
                await self.place.client.create(self.place.bodies.taint_rule(device))
            else:
                await self.place.taint(device["pool"], "NoExecute", device["device"])

    async def disturb_device(self) -> None:
        """Let the driver of the shared claim's devices report that they are not ready any more."""
        claim, driver = self._shared(), self.place.driver
        patch = driver and driver.disturb(claim, self.place.now())
        if not patch:
            raise Nothing("no driver that binds devices")
        await self.place.report(claim, patch)

    # -- nodes

    async def cordon(self) -> None:
        closed = self.rng.random() < 0.6
        patch = {"spec": {"unschedulable": closed or None}}
        await self.place.client.patch(NODE, "", self._node(), patch)

    async def lose_node(self) -> None:
        name = self._node()
        self._add(f" {name}")
        self.place.lose(name)

    async def restore_node(self) -> None:
        if not self.place.lost:
            raise Nothing("no node is lost")
        await self._restore(rebooted=False)

    async def reboot_node(self) -> None:
        """Reboot a lost node, or any if none is lost."""
        await self._restore(rebooted=True)

    async def _restore(self, *, rebooted: bool) -> None:
        name = self.rng.choice(sorted(self.place.lost)) if self.place.lost else self._node()
        self._add(f" {name}")
        await self.place.restore(name, rebooted=rebooted)

    # -- the foreign writer

    async def meddle(self) -> None:
        """Add, remove and reorder references as a foreign writer."""
        claim = await self.place.client.get(self._claims, self.place.namespace, "slice")
        status = claim.get("status") or {}
        how, listed = meddled(status.get("reservedFor") or (), self.rng)
        self._add(f" {how}")
        await self.place.put_status(claim, {**status, "reservedFor": listed or None})

    # -- requests and choices

    @property
    def _claims(self) -> Version:
        return self.place.bodies.fleet.claims

    async def _patch(self, kind: Version, name: str, patch: Object) -> None:
        await self.place.client.patch(kind, self.place.namespace, name, patch)

    async def _delete(self, kind: Version, name: str, **options: object) -> None:
        await self.place.client.delete(kind, self.place.namespace, name, options)

    def _one(self) -> App:
        return self.rng.choice(self.apps)

    def _any(self, plural: str) -> str:
        objects = self.place.objects(plural)
        if not objects:
            raise Nothing(f"no {plural}")
        return str(self.rng.choice(sorted(body["metadata"]["name"] for body in objects)))

    def _shared(self) -> Object:
        claim = self.place.find("resourceclaims", "slice")
        if claim is None:
            raise Nothing("no claim")
        return claim

    def _node(self) -> str:
        return self.rng.choice(self.place.bodies.fleet.names)
