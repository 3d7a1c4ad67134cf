"""User actions in one namespace: of users, administrators and nodes, and of a foreign writer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from kube_in_process.real.client import RequestFailed, Version
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import NODE
from kube_in_process.real.servers.pod_worker import POD

from claimctl.kube.errors import KubeError, NotServed, from_answer
from claimctl.wire.base import Object, encode
from claimctl_demo.documents import DocumentClient
from labs.torture.drivers import DEVICE, Driver, results_of
from labs.torture.stored import meddled
from labs.torture_real.bodies import API, RESERVATION, TAINT_RULE, App, Bodies
from labs.torture_real.cluster import SharedCluster

KINDS = ("Deployment", "StatefulSet", "Job")
POLICIES = ("WhileRunning", "WhileRunning", "WhileRunning", "Persistent", "Manual")
TROUBLE = (KubeError, RequestFailed, OSError, TimeoutError)
"""Errors that a request may have while servers are killed."""
_PATIENCE = 20.0
_DRIVER_SECONDS = 0.5


class Nothing(Exception):
    """The action is impossible now: its object does not exist."""


@dataclass
class RealUserActions:
    """Each method is one action. An action that is impossible now does nothing."""

    cluster: SharedCluster
    bodies: Bodies
    kubelets: Kubelets
    client: DocumentClient
    rng: Random
    apps: list[App] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)
    """Time (seconds of the wall clock) and text of each action."""
    lost: set[str] = field(default_factory=set)
    actions_done: int = 0
    broken: bool = False
    """Whether devices may have taints."""
    driver: Driver | None = None
    """The driver of the devices, if the scheduler waits for its reports."""

    @property
    def namespace(self) -> str:
        return self.bodies.namespace

    async def act(self) -> None:
        action = self.rng.choice(self._actions())
        await self.attempt(action)

    async def attempt(self, action: Callable[[], Awaitable[None]]) -> None:
        """Do an action and record its result."""
        self._say(action.__name__.strip("_"))
        try:
            async with asyncio.timeout(_PATIENCE):
                await action()
            self.actions_done += 1
        except Nothing as nothing:
            self._add(f": {nothing}")
        except TROUBLE as error:
            self._add(f": {str(error)[:120] or type(error).__name__}")

    def _say(self, text: str) -> None:
        self.log.append((self.cluster.now(), text))

    def _add(self, text: str) -> None:
        at, before = self.log[-1]
        self.log[-1] = (at, before + text)

    def _actions(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            *[self._scale] * 6,
            *[self._delete_pod] * 2,
            *[self._force_delete] * 2,
            *[self._vanish] * 2,
            *[self._recreate] * 2,
            self._create,
            self._delete,
            self._roll_out,
            self._evict,
            self._delete_claim,
            self._withdraw,
            self._reserve,
            self._ask_for_release,
            self._annotate,
            self._cordon,
            self._lose_node,
            self._reboot_node,
            self._restore_node,
            self._restore_node,
            self._taint,
            self._break_device,
            self._disturb_device,
            *[self._change_mind] * 2,
            self._come_elsewhere,
            *[self._meddle] * 2,
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
        name = f"train-{kind.lower()}"
        job: Object = {"completionMode": self.rng.choice(["NonIndexed", "Indexed"])}
        job["suspend"] = self.rng.random() < 0.2
        shared = self.cluster.pod_groups and self.rng.random() < 0.8
        return App(
            kind=kind,
            name=name,
            claim=claim,
            group=name if shared and claim else "",
            policy=self.rng.choice(POLICIES),
            annotated=self.rng.random() < 0.25,
            job=job,
            seconds=self.rng.choice(["1", "5", "30"]),
            exit_code=self.rng.choice(["0", "0", "1"]),
        )

    async def begin(self) -> None:
        """Create the first objects."""
        self.choose()
        await self.client.create(self.bodies.claim_template())
        for name in sorted({app.claim for app in self.apps if app.claim}):
            annotated = all(app.annotated for app in self.apps if app.claim == name)
            if annotated or self.rng.random() < 0.3:
                await self.client.create(self.bodies.claim(name))
        for app in self.apps:
            if app.claim and not app.annotated:
                await self._reserved(app)
            await self._created(app)

    async def _reserved(self, app: App) -> None:
        body = self.bodies.reservation(app, template=self.rng.random() < 0.7)
        await self.client.create(body)

    async def _created(self, app: App) -> None:
        pods = app.at_most(self.rng.choice([0, 1, 2, 3, 6]))
        self._add(f" {app.kind} of {pods}")
        await self.client.create(self.bodies.workload(app, pods))

    async def _create(self) -> None:
        await self._created(self._one())

    async def _scale(self) -> None:
        app = self._one()
        pods = app.at_most(self.rng.choice([0, 0, 1, 2, 4, 8]))
        spec = {"suspend": not pods} if app.kind == "Job" else {"replicas": pods}
        self._add(f" {app.kind} to {pods}")
        await self._patch(app, {"spec": spec})

    async def _roll_out(self) -> None:
        note = {"restarted": str(self.rng.random())}
        template = {"metadata": {"annotations": note}}
        await self._patch(self._one(), {"spec": {"template": template}})

    async def _delete(self) -> None:
        await self._deleted(self._one())

    async def _deleted(self, app: App) -> None:
        cascade = self.rng.choice(["Background", "Background", "Foreground", "Orphan"])
        self._add(f" {app.kind} {cascade}")
        options = {"propagationPolicy": cascade}
        await self.client.delete(_version(app), self.namespace, app.name, options)

    async def _recreate(self) -> None:
        """Delete a workload without waiting for its pods, and create it again under its name."""
        app = self._one()
        await self._deleted(app)
        await self._created(app)

    async def _delete_pod(self) -> None:
        await self.client.delete(POD, self.namespace, self._pod(), {})

    async def _force_delete(self) -> None:
        await self.client.delete(POD, self.namespace, self._pod(), {"gracePeriodSeconds": 0})

    async def _vanish(self) -> None:
        """Force-delete all running pods of a workload, and let it want no new ones."""
        app = self._one()
        for pod in self.cluster.sight.objects("pods", self.namespace):
            if (pod["metadata"].get("labels") or {}).get("app") == app.name:
                name = pod["metadata"]["name"]
                await self.client.delete(POD, self.namespace, name, {"gracePeriodSeconds": 0})
        spec = {"suspend": True} if app.kind == "Job" else {"replicas": 0}
        await self._patch(app, {"spec": spec})

    async def _evict(self) -> None:
        name = self._pod()
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self._send("POST", f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction", body)

    async def _delete_claim(self) -> None:
        await self.client.delete(self._claims, self.namespace, "slice", {})

    async def _withdraw(self) -> None:
        await self.client.delete(RESERVATION, self.namespace, self._reservation(), {})

    async def _reserve(self) -> None:
        app = self._one()
        if app.claim:
            await self._reserved(app)

    async def _ask_for_release(self) -> None:
        """Ask for a release as ``claimctl release`` does."""
        uid = self._shared()["metadata"]["uid"]
        patch = {"metadata": {"annotations": {"claimctl.io/release": uid}}}
        await self.client.patch(RESERVATION, self.namespace, self._reservation(), patch)

    async def _annotate(self) -> None:
        value = self.rng.choice(["*", "slice", None])
        self._add(f" {value}")
        patch = {"metadata": {"annotations": {"claimctl.io/reserve": value}}}
        await self._patch(self._one(), patch)

    async def _change_mind(self) -> None:
        """Withdraw a reservation, and perhaps reserve the claim again."""
        await self._withdraw()
        await asyncio.sleep(self.rng.choice([0.0, 0.5, 3.0]))
        if self.rng.random() < 0.5:
            await self._reserve()

    async def _come_elsewhere(self) -> None:
        """Create a pod of nobody's that needs the shared claim on one of the nodes."""
        spec = {
            **self.bodies.pod(App("Deployment", "stranger", "slice"))["spec"],
            "nodeSelector": {"kubernetes.io/hostname": self._node()},
        }
        name = f"stranger-{self.rng.randrange(10**6)}"
        meta = {"name": name, "namespace": self.namespace}
        await self.client.create(
            {"apiVersion": POD[0], "kind": POD[1], "metadata": meta, "spec": spec}
        )

    # -- devices

    async def _taint(self) -> None:
        """Taint all devices of a node, or remove their taints."""
        self.broken = True
        effect = self.rng.choice(["NoSchedule", "NoExecute", ""])
        self._add(f" {effect or 'none'}")
        await self._tainted(self._node(), effect, None)

    async def _break_device(self) -> None:
        """Taint the devices of the shared claim, in their slice or by a rule: its pods must go."""
        self.broken = True
        for device in results_of(self._shared()):
            rule = self.rng.random() < 0.5
            self._add(f" {device['pool']}/{device['device']}{' by a rule' if rule else ''}")
            if rule:
                await self.client.create(self.bodies.taint_rule(device))
            else:
                await self._tainted(device["pool"], "NoExecute", device["device"])

    async def _tainted(self, node: str, effect: str, only: str | None) -> None:
        fleet = self.bodies.fleet
        kind = (fleet.resource_api, "ResourceSlice")
        name = f"{node}-{fleet.driver}-0"
        devices = (await self.client.get(kind, "", name))["spec"]["devices"]
        for device in devices:
            if only in (None, device["name"]):
                device["taints"] = [{"key": "broken", "effect": effect}] if effect else None
        await self.client.patch(kind, "", name, {"spec": {"devices": devices}})

    async def mend_devices(self) -> None:
        """Remove all taints of devices."""
        for node in self.bodies.fleet.names:
            await self._tainted(node, "", None)
        with suppress(NotServed):
            for rule in await self.client.list(TAINT_RULE):
                name = rule["metadata"]["name"]
                if rule["spec"]["deviceSelector"].get("driver") == self.bodies.fleet.driver:
                    await self.client.delete(TAINT_RULE, "", name)

    async def _disturb_device(self) -> None:
        """Let the driver of the shared claim's devices report that they are not ready any more."""
        claim = self._shared()
        patch = self.driver and self.driver.disturb(claim, self.cluster.now())
        if not patch:
            raise Nothing("no driver that binds devices")
        await self.client.patch_status(self._claims, self.namespace, "slice", patch)

    async def bind_devices(self) -> None:
        """From now on, the scheduler waits for a driver's reports before it binds pods."""
        kind = (self.bodies.fleet.resource_api, "ResourceSlice")
        for node in self.bodies.fleet.names:
            name = f"{node}-{self.bodies.fleet.driver}-0"
            devices = (await self.client.get(kind, "", name))["spec"]["devices"]
            patch = {"spec": {"devices": [device | DEVICE for device in devices]}}
            await self.client.patch(kind, "", name, patch)

    async def drive(self) -> None:
        """Play the driver of devices with binding conditions until cancelled."""
        driver = self.driver = Driver(Random(f"driver {self.namespace}"))
        while True:
            claims = self.cluster.sight.objects("resourceclaims", self.namespace)
            for claim, patch in driver.reports(claims, self.cluster.now()):
                with suppress(*TROUBLE):
                    name = claim["metadata"]["name"]
                    await self.client.patch_status(self._claims, self.namespace, name, patch)
            await asyncio.sleep(_DRIVER_SECONDS)

    # -- nodes

    async def _cordon(self) -> None:
        closed = self.rng.random() < 0.6
        await self.client.patch(NODE, "", self._node(), {"spec": {"unschedulable": closed}})

    async def _lose_node(self) -> None:
        name = self._node()
        self._add(f" {name}")
        self.kubelets.lose(name)
        self.lost.add(name)

    async def _restore_node(self) -> None:
        await self.bring_back(rebooted=False)

    async def _reboot_node(self) -> None:
        await self.bring_back(rebooted=True)

    async def bring_back(self, *, rebooted: bool) -> None:
        """Bring a lost node back; with ``rebooted`` any node, under a new boot ID."""
        name = self.rng.choice(sorted(self.lost)) if self.lost else self._node()
        if name not in self.lost and not rebooted:
            raise Nothing("no node is lost")
        self._add(f" {name}")
        await self.kubelets.recover(name, rebooted=rebooted)
        self.lost.discard(name)

    # -- the foreign writer

    async def _meddle(self) -> None:
        """Add, remove and reorder references as a foreign writer."""
        claim = await self.client.get(self._claims, self.namespace, "slice")
        how, listed = meddled((claim.get("status") or {}).get("reservedFor") or (), self.rng)
        self._add(f" {how}")
        await self.put_status(claim, {**(claim.get("status") or {}), "reservedFor": listed})

    async def put_status(self, claim: Object, status: Object) -> None:
        """Replace a claim's status under the version of ``claim``."""
        served = await self.client.served(*self._claims)
        path = f"{served.at(self.namespace, claim['metadata']['name'])}/status"
        await self._send("PUT", path, {**claim, "status": status})

    async def _send(self, method: str, path: str, body: Any) -> None:
        headers = {"content-type": "application/json", "user-agent": "people"}
        answer = await self.cluster.transport.send(method, path, (), headers, encode(body))
        try:
            text = b"".join([part async for part in answer.body])
        finally:
            await answer.close()
        if answer.status >= 400:
            raise from_answer(method, path, answer.status, {}, text)

    # -- choices

    @property
    def _claims(self) -> Version:
        return self.bodies.fleet.claims

    async def _patch(self, app: App, patch: Object) -> None:
        await self.client.patch(_version(app), self.namespace, app.name, patch)

    def _one(self) -> App:
        return self.rng.choice(self.apps)

    def _pod(self) -> str:
        return self._any("pods")

    def _reservation(self) -> str:
        return self._any("claimreservations")

    def _any(self, plural: str) -> str:
        objects = self.cluster.sight.objects(plural, self.namespace)
        if not objects:
            raise Nothing(f"no {plural}")
        return str(self.rng.choice(sorted(body["metadata"]["name"] for body in objects)))

    def _shared(self) -> Object:
        claim = self.cluster.sight.find("resourceclaims", self.namespace, "slice")
        if claim is None:
            raise Nothing("no claim")
        return claim

    def _node(self) -> str:
        return self.rng.choice(self.bodies.fleet.names)


def _version(app: App) -> Version:
    return (API[app.kind], app.kind)
