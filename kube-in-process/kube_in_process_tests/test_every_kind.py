"""Every pair of kind and verb that discovery names is acted on, refused, or warned about."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.kinds.emulation import EMULATION
from kube_in_process.options import Authorization

from .worlds import HOLD, Object, World

pytestmark = pytest.mark.kube_cluster(replace(HOLD, authorization=Authorization.RBAC))

GIVEN = yaml.safe_load(Path(__file__).with_name("one_of_each.yaml").read_text(encoding="utf-8"))
NOTE = {"metadata": {"annotations": {"changed": "yes"}}}
MERGE = {"content-type": "application/merge-patch+json"}
KEEPS = frozenset(
    {
        "configmaps",
        "events",
        "events.events.k8s.io",
        "podtemplates",
        "controllerrevisions.apps",
        "leases.coordination.k8s.io",
        "endpointslices.discovery.k8s.io",
    }
)
"""Kinds that a control plane only keeps: it does not act on those that a user makes."""
ANSWERS = ("reviews", "bindings")
"""The ends of the resources that are acted on at once and never stored."""
OF_ADMISSION = ".admissionregistration.k8s.io"
"""The group of kinds that have whole files of tests."""


@dataclass(frozen=True)
class Resource:
    """A kind or a subresource of it, as discovery names it."""

    root: str
    name: str
    namespaced: bool
    verbs: tuple[str, ...]

    @property
    def plural(self) -> str:
        return self.name.partition("/")[0]

    @property
    def resource(self) -> str:
        """``deployments.apps``."""
        group = self.root.removeprefix("/apis/").rpartition("/")[0]
        return self.plural if self.root == "/api/v1" else f"{self.plural}.{group}"

    @property
    def collection(self) -> str:
        place = "/namespaces/default" if self.namespaced else ""
        return f"{self.root}{place}/{self.plural}"


@dataclass
class KindsClient:
    """One client of a cluster, which says what became of its requests."""

    world: World

    def __post_init__(self) -> None:
        self._transport = self.world.cluster.transport()

    async def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Object, str]:
        """The status, the body and the warnings of the answer."""
        plain, _, query = path.partition("?")
        pairs = [(key, value) for key, _, value in (q.partition("=") for q in query.split("&"))]
        given = {"content-type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        answer = await self._transport.send(
            method, plain, [pair for pair in pairs if pair[0]], given, data
        )
        if "watch=true" in query:
            await answer.close()
            return answer.status, {}, ""
        whole = b"".join([part async for part in answer.body])
        body_read = json.loads(whole) if whole.startswith(b"{") else {"text": whole.decode()}
        return answer.status, body_read, answer.headers.get("warning", "")

    async def outcome(self, method: str, path: str, body: Any = None, **headers: Any) -> str:
        status, body_read, warning = await self.send(method, path, body, **headers)
        text = str(body_read.get("message"))
        if status == 403 and ("is not emulated" in text or "is not served: no cont" in text):
            return "refused"
        if status >= 400:
            return f"{status}: {text}"
        return "warned" if "nothing acts on" in warning else "acted on"

    async def resources(self) -> list[Resource]:
        roots = ["/api/v1"]
        _, groups, _ = await self.send("GET", "/apis")
        roots += [
            f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups["groups"]
        ]
        served = []
        for root in roots:
            _, listed, _ = await self.send("GET", root)
            served += [
                Resource(root, resource["name"], resource["namespaced"], tuple(resource["verbs"]))
                for resource in listed["resources"]
            ]
        return served


def named(resource: Resource) -> Object:
    given = GIVEN["kinds"][resource.resource]
    meta = {"name": f"a-{resource.plural}", **given.get("metadata", {})}
    return {**given, "metadata": meta}


def path_of(resource: Resource) -> str:
    return f"{resource.collection}/{named(resource)['metadata']['name']}"


def kinds(resources: list[Resource]) -> list[Resource]:
    """The resources that can be created, in the order of the file."""
    order = list(GIVEN["kinds"])
    creatable = [
        resource
        for resource in resources
        if "/" not in resource.name and "create" in resource.verbs
    ]
    return sorted(creatable, key=lambda resource: order.index(resource.resource))


def expected(resource: str) -> str:
    if resource in EMULATION.refused:
        return "refused"
    return "warned" if resource in EMULATION.inert else "acted on"


def made_by(world: World, plural: str, kind: str) -> bool:
    return any(
        owner["kind"] == kind
        for obj in world.api.list(plural)
        for owner in obj["metadata"].get("ownerReferences") or ()
    )


def status_of(plural: str, key: str, value: Any) -> Callable[[World], bool]:
    def has(world: World) -> bool:
        return bool((world.get(plural, f"a-{plural}").get("status") or {}).get(key) == value)

    return has


def may(world: World, user: str, resource: str, namespace: str = "") -> bool:
    asked = {"namespace": namespace, "verb": "get", "resource": resource}
    body = {"spec": {"user": user, "resourceAttributes": asked}}
    return bool(world.api.create("subjectaccessreviews", body)["status"]["allowed"])


def allocated(world: World) -> bool:
    claim = world.get("resourceclaims", "a-resourceclaims")
    results = claim["status"]["allocation"]["devices"]["results"]
    return bool(results[0]["driver"] == "other.example.com")


EFFECTS: dict[str, Callable[[World], bool]] = {
    "namespaces": lambda w: w.api.find("serviceaccounts", "a-namespaces", "default") is not None,
    "nodes": lambda w: "not-ready" in w.get("nodes", "a-nodes")["spec"]["taints"][0]["key"],
    "persistentvolumes": status_of("persistentvolumes", "phase", "Bound"),
    "persistentvolumeclaims": status_of("persistentvolumeclaims", "phase", "Bound"),
    "storageclasses.storage.k8s.io": lambda w: (
        w.get("persistentvolumeclaims", "made")["status"]["phase"] == "Bound"
    ),
    "pods": status_of("pods", "phase", "Running"),
    "services": lambda w: bool(w.get("endpoints", "a-services").get("subsets")),
    "endpoints": lambda w: bool(
        w.api.list("endpointslices", "default", "kubernetes.io/service-name=a-endpoints")
    ),
    "secrets": lambda w: bool(b64decode(w.get("secrets", "a-secrets")["data"]["token"])),
    "serviceaccounts": lambda w: bool(w.api.token("default", "a-serviceaccounts", 600)),
    "replicationcontrollers": lambda w: made_by(w, "pods", "ReplicationController"),
    "deployments.apps": lambda w: made_by(w, "replicasets", "Deployment"),
    "replicasets.apps": lambda w: made_by(w, "pods", "ReplicaSet"),
    "statefulsets.apps": lambda w: made_by(w, "pods", "StatefulSet"),
    "daemonsets.apps": lambda w: made_by(w, "pods", "DaemonSet"),
    "jobs.batch": status_of("jobs", "succeeded", 1),
    "cronjobs.batch": lambda w: made_by(w, "jobs", "CronJob"),
    "poddisruptionbudgets.policy": status_of("poddisruptionbudgets", "observedGeneration", 1),
    "clusterroles.rbac.authorization.k8s.io": lambda w: may(w, "ann", "nodes"),
    "clusterrolebindings.rbac.authorization.k8s.io": lambda w: may(w, "ann", "nodes"),
    "roles.rbac.authorization.k8s.io": lambda w: may(w, "bob", "pods", "default"),
    "rolebindings.rbac.authorization.k8s.io": lambda w: may(w, "bob", "pods", "default"),
    "customresourcedefinitions.apiextensions.k8s.io": lambda w: w.api.list("things") == [],
    "priorityclasses.scheduling.k8s.io": lambda w: (
        w.get("pods", "of-a-class")["spec"]["priority"] == 7
    ),
    "deviceclasses.resource.k8s.io": allocated,
    "resourceclaims.resource.k8s.io": allocated,
    "resourceslices.resource.k8s.io": allocated,
    "resourceclaimtemplates.resource.k8s.io": lambda w: made_by(w, "resourceclaims", "Pod"),
}
"""By resource: whether the cluster has done with the object what a control plane does."""


def acted_on(resources: list[Resource]) -> Iterator[str]:
    for kind in kinds(resources):
        kept = kind.resource in KEEPS or kind.resource.endswith(OF_ADMISSION)
        at_once = kind.plural.endswith(ANSWERS)
        if kind.resource in EMULATION.emulated and not kept and not at_once:
            yield kind.resource


async def test_every_verb_of_every_kind_is_acted_on_refused_or_warned_about(world: World) -> None:
    asked = KindsClient(world)
    resources = await asked.resources()
    stored = [kind for kind in kinds(resources) if "update" in kind.verbs]
    await world.passes(1)
    for body in GIVEN["beside"][2:4]:
        world.api.create(f"{body['kind'].lower()}s", body, "default")
    world.api.create("pods", GIVEN["beside"][0], "default")
    got = {kind: await create(asked, kind) for kind in kinds(resources)}
    for body in (GIVEN["beside"][1], GIVEN["beside"][4]):
        world.api.create("pods", body, "default")
    assert {name.resource: text for name, text in got.items()} == {
        name.resource: expected(name.resource) for name in got
    }
    await world.passes(70)
    assert world.get("pods", "unbound")["spec"]["nodeName"] == "node-0"
    assert [name for name in acted_on(resources) if not EFFECTS[name](world)] == []
    there = [name for name in stored if got[name] != "refused"]
    await change(asked, there)
    await delete(asked, there)


async def create(asked: KindsClient, resource: Resource) -> str:
    return await asked.outcome("POST", resource.collection, named(resource))


async def change(asked: KindsClient, there: list[Resource]) -> None:
    """Read, replace and patch an object of each kind."""
    for resource in there:
        path, wanted = path_of(resource), expected(resource.resource)
        _, stored, _ = await asked.send("GET", path)
        stored["metadata"]["labels"] = {**(stored["metadata"].get("labels") or {}), "put": "yes"}
        assert await asked.outcome("PUT", path, stored) == wanted, path
        assert await asked.outcome("PATCH", path, NOTE, headers=MERGE) == wanted, path
        _, after, _ = await asked.send("GET", path)
        assert after["metadata"]["labels"]["put"] == "yes"
        assert after["metadata"]["annotations"]["changed"] == "yes"
        assert (
            await asked.outcome("GET", f"{resource.collection}?labelSelector=put=yes") == "acted on"
        )
        watch = f"{resource.collection}?watch=true&timeoutSeconds=1"
        assert await asked.outcome("GET", watch) == "acted on"


async def delete(asked: KindsClient, there: list[Resource]) -> None:
    """Delete an object of each kind, and one more by deletecollection."""
    for name in ("claimer", "of-a-class", "unbound"):
        await asked.send("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    several = [resource for resource in there if "deletecollection" in resource.verbs]
    for resources, query in ((there, ""), (several, "?labelSelector=put=yes")):
        for resource in resources:
            path = resource.collection + query if query else path_of(resource)
            assert await asked.outcome("DELETE", path) == "acted on", path
        await asked.world.passes(60)
        left = [resource.resource for resource in resources if await is_there(asked, resource)]
        assert left == []
        if not query:
            for resource in several:
                body = named(resource)
                marked = {**(body["metadata"].get("labels") or {}), "put": "yes"}
                body = {**body, "metadata": {**body["metadata"], "labels": marked}}
                assert await asked.outcome("POST", resource.collection, body) == expected(
                    resource.resource
                )


async def is_there(asked: KindsClient, resource: Resource) -> bool:
    status, _, _ = await asked.send("GET", path_of(resource))
    return status != 404


STREAMED = ("attach", "exec", "portforward", "proxy")


async def test_every_subresource_is_acted_on_or_refused(world: World) -> None:
    asked = KindsClient(world)
    resources = await asked.resources()
    by_name = {(kind.root, kind.name): kind for kind in kinds(resources)}
    for answer in by_name.values():
        if answer.resource not in EMULATION.refused and not answer.plural.endswith(ANSWERS):
            await create(asked, answer)
    await world.passes(1)
    wrong = {}
    for resource in (resource for resource in resources if "/" in resource.name):
        sub = resource.name.partition("/")[2]
        refused = resource.resource in EMULATION.refused or sub in STREAMED
        refused = refused or f"{resource.plural}/{sub}" in EMULATION.refused
        for verb in resource.verbs:
            text = await subresource(asked, resource, verb)
            if refused and verb in ("create", "update", "patch"):
                right = text == "refused"
            else:
                right = not text.startswith(("405", "5")) or refused
            if not right:
                wrong[f"{resource.name} {verb}"] = text
    assert wrong == {}


async def subresource(asked: KindsClient, resource: Resource, verb: str) -> str:
    path = f"{path_of(resource)}/{resource.name.partition('/')[2]}"
    if verb == "get":
        return await asked.outcome("GET", path)
    if verb == "patch":
        return await asked.outcome("PATCH", path, {}, headers=MERGE)
    if verb == "delete":
        return await asked.outcome("DELETE", path)
    name = named(resource)["metadata"]["name"]
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0"}}
    return await asked.outcome("POST" if verb == "create" else "PUT", path, body)
