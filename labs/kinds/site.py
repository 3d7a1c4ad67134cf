"""The API server of a schedule, without components: the schedule plays them, one act at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube_in_process.api_server import api_server
from kube_in_process.errors import StatusError
from kube_in_process.http.handler import Handler
from kube_in_process.options import ClusterOptions
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import MASTERS, Actor, DeleteOptions

from claimctl.controller.manager import Manager
from claimctl.controller.preflight import NotReady
from claimctl.controller.settings import Settings
from claimctl.kube.clock import LoopClock
from claimctl.wire.claims import CLAIM_FINALIZER
from labs.kinds.grammar import Json
from labs.kinds.passage import Passage
from labs.torture.testbed import crds_without_rules
from tests.e2e.kinds import GANGS, definition
from tests.e2e.site import CONTROLLER_USER, NAMESPACE
from tests.support.builders import NOW

CLAIM, ROOT, GROUP = "slice", "train", GANGS.group
TEAMS = "teams"
DEVICES = {"results": [{"request": "gpu", "driver": "gpu.example", "pool": "n", "device": "0"}]}
NAMED = {"resourceClaims": [{"name": "gpu", "resourceClaimName": CLAIM}]}
POD_SPEC = {"containers": [{"name": "main", "image": "x"}], **NAMED}
OWNED = ("pods", "jobs", TEAMS, GANGS.plural, "claimreservations")
"""The resources that the garbage collector looks at."""


def team_definition() -> Json:
    body = definition(GANGS)
    names = {"kind": "Team", "listKind": "TeamList", "plural": TEAMS, "singular": "team"}
    spec = body["spec"] | {"names": names}
    return {"metadata": {"name": f"{TEAMS}.{GROUP}"}, "spec": spec}


@dataclass
class KindsSite:
    """One namespace with a claim, a workload of a kind without a struct, and what it makes."""

    handler: Handler
    clock: LoopClock
    passage: Passage
    manager: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def opened(cls) -> KindsSite:
        """In a running event loop."""
        clock = LoopClock(NOW)
        handler = api_server(ClusterOptions(), clock)
        inner = handler.transport(Actor(CONTROLLER_USER, (MASTERS,), "claimctl"))
        site = cls(handler, clock, Passage(inner, GROUP))
        for name in (NAMESPACE, "claimctl-system"):
            site.admin.create("namespaces", {"metadata": {"name": name}})
        for body in (*crds_without_rules(), definition(GANGS), team_definition()):
            site.admin.create("customresourcedefinitions", body)
        return site

    def _as(self, user: str) -> ApiFor:
        return ApiFor(self.handler.api, Actor(user, (MASTERS,), user.rpartition(":")[2]))

    @property
    def admin(self) -> ApiFor:
        return self._as("admin")

    # -- the controller

    def start(self) -> None:
        settings = Settings.checked(identity="one", leader_elect=False)
        manager = Manager(settings, self.passage, self.clock, rng=Random(0))
        self._stop = asyncio.Event()
        self.manager = asyncio.create_task(manager.run(self._stop), name="manager")

    async def stop(self) -> None:
        """Stop the controller as SIGTERM does."""
        self._stop.set()
        if self.manager is not None:
            with suppress(NotReady):
                await self.manager

    def revive(self) -> None:
        """Start a controller again that has ended because it lacked a right."""
        if self.manager is not None and self.manager.done():
            if not isinstance(self.manager.exception(), NotReady):
                self.manager.result()
            self.start()

    # -- what is there

    def find(self, plural: str, name: str) -> Json | None:
        with suppress(StatusError, LookupError):
            return self.admin.find(plural, NAMESPACE, name)
        return None

    def all(self, plural: str) -> list[Json]:
        with suppress(StatusError, LookupError):
            return list(self.admin.list(plural, NAMESPACE))
        return []

    # -- scheduler and kubelet

    def reserve(self, pod: str) -> None:
        """The scheduler allocates the claim for a pending pod, or adds the pod to its list."""
        body, claim = self.find("pods", pod), self.find("resourceclaims", CLAIM)
        if body is None or claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        if "deletionTimestamp" in body["metadata"]:
            return
        scheduler = self._as("system:kube-scheduler")
        status = claim.setdefault("status", {})
        if "allocation" not in status:
            meta = claim["metadata"]
            meta["finalizers"] = [*meta.get("finalizers", []), CLAIM_FINALIZER]
            claim = scheduler.update("resourceclaims", claim)
            status = claim.setdefault("status", {})
            status["allocation"] = {"devices": DEVICES}
        listed = status.setdefault("reservedFor", [])
        uid = body["metadata"]["uid"]
        if all(each["uid"] != uid for each in listed):
            listed.append({"resource": "pods", "name": pod, "uid": uid})
            scheduler.update("resourceclaims", claim, "status")

    def bind(self, pod: str) -> None:
        """The scheduler binds a pod that it has listed, and the kubelet starts it, or refuses."""
        body = self.find("pods", pod)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return
        self._as("system:kube-scheduler").bind(NAMESPACE, pod, "n")
        status = (self.find("resourceclaims", CLAIM) or {}).get("status", {})
        uids = {each["uid"] for each in status.get("reservedFor", [])}
        if body["metadata"]["uid"] in uids and "allocation" in status:
            running = [{"name": "main", "state": {"running": {}}}]
            self.report(pod, {"phase": "Running", "containerStatuses": running})

    def report(self, pod: str, status: Json) -> None:
        """The kubelet writes the status of a pod."""
        self._as("system:node:n").patch("pods", NAMESPACE, pod, {"status": status}, "status")

    def end(self, pod: str) -> None:
        """The containers of a pod have stopped; a pod that is being deleted is gone then."""
        ended = [{"name": "main", "state": {"terminated": {"exitCode": 0}}}]
        self.report(pod, {"phase": "Succeeded", "containerStatuses": ended})
        body = self.find("pods", pod)
        if body is not None and "deletionTimestamp" in body["metadata"]:
            self.remove(pod)

    def remove(self, pod: str) -> None:
        """Delete a pod's object at once, whatever its containers do."""
        self.admin.delete("pods", NAMESPACE, pod, DeleteOptions(grace_period_seconds=0))

    # -- kube-controller-manager

    def clean_list(self) -> None:
        """Remove the dead pods from the claim's list, and deallocate when the list is empty."""
        claim = self.find("resourceclaims", CLAIM)
        status: Json = (claim or {}).get("status", {})
        if claim is None or not status.get("reservedFor"):
            return
        pods = {each["metadata"]["uid"]: each for each in self.all("pods")}
        left = [
            entry
            for entry in status["reservedFor"]
            if entry["resource"] != "pods" or not _is_done(pods.get(entry["uid"]))
        ]
        if left == status["reservedFor"]:
            return
        manager = self._as("system:kube-controller-manager")
        status["reservedFor"] = left
        if not left:
            del status["allocation"]
        claim = manager.update("resourceclaims", claim, "status")
        if not left:
            kept = [each for each in claim["metadata"]["finalizers"] if each != CLAIM_FINALIZER]
            claim["metadata"]["finalizers"] = kept
            manager.update("resourceclaims", claim)

    def collect_garbage(self) -> None:
        """Delete the objects all of whose owners are gone."""
        there = {each["metadata"]["uid"] for plural in OWNED for each in self.all(plural)}
        for plural in OWNED:
            for each in self.all(plural):
                meta = each["metadata"]
                owners = meta.get("ownerReferences", [])
                gone = owners and all(owner["uid"] not in there for owner in owners)
                if gone and "deletionTimestamp" not in meta:
                    self.admin.delete(plural, NAMESPACE, meta["name"])

    def orphan(self, owner: Json) -> None:
        """Take the reference to an owner from all that it owns (``--cascade=orphan``)."""
        for plural in OWNED:
            for each in self.all(plural):
                owners = each["metadata"].get("ownerReferences", [])
                left = [one for one in owners if one["uid"] != owner["metadata"]["uid"]]
                if left != owners:
                    change: dict[str, Any] = {"metadata": {"ownerReferences": left}}
                    self.admin.patch(plural, NAMESPACE, each["metadata"]["name"], change)


def _is_done(pod: Json | None) -> bool:
    if pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return True
    return "deletionTimestamp" in pod["metadata"] and "nodeName" not in pod["spec"]


def owner_of(body: Json) -> list[Json]:
    """The ownerReferences of an object whose controller is ``body``."""
    meta = body["metadata"]
    head = {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": meta["name"]}
    return [{**head, "uid": meta["uid"], "controller": True}]


def children_of(site: KindsSite, uids: set[str], plurals: tuple[str, ...]) -> Iterator[Json]:
    """The objects of these resources that descend from an object with one of these UIDs."""
    objects = [each for plural in plurals for each in site.all(plural)]
    family, size = set(uids), -1
    while size != len(family):
        size = len(family)
        family |= {
            each["metadata"]["uid"]
            for each in objects
            if any(one["uid"] in family for one in each["metadata"].get("ownerReferences", []))
        }
    return (each for each in objects if each["metadata"]["uid"] in family)
