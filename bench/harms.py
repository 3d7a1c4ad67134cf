"""What a user with the role ``edit`` can do to a controller from the user's own namespace.

Each harm is a coroutine: it makes its objects, and then goes on until it is cancelled. ``times``
multiplies its size. Objects that a server refuses are no error: a harm is what the server accepts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kube_in_process.real.client import Version
from kube_in_process.real.servers.nodes import Fleet

from bench.jobs import RESERVE, claim, made
from claimctl.kube.errors import KubeError
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient

SPACE = "tenant"
POD, DEPLOYMENT = ("v1", "Pod"), ("apps/v1", "Deployment")
RESERVATION: Version = ("claimctl.io/v1alpha1", "ClaimReservation")
POLICY = "admissionregistration.k8s.io/v1"
AT_A_TIME = 16
FAT = "x" * 250_000
AT_ONCE = {"gracePeriodSeconds": 0}


@dataclass
class Tenant:
    """A user's access to the namespace ``tenant``."""

    transport: Transport
    fleet: Fleet
    client: DocumentClient = field(init=False)
    accepted: int = 0
    """How many objects the server took."""

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "tenant")

    async def create(self, bodies: Iterable[Object]) -> None:
        """Create objects, some at a time; what is refused is left out."""

        async def create(body: Object) -> None:
            await self.client.create(body)
            self.accepted += 1

        await side_by_side(create(body) for body in bodies)

    async def post(self, body: str, kind: Version) -> None:
        """Create an object from JSON that no codec here could read."""
        path = (await self.client.served(*kind)).at(SPACE)
        headers = {"content-type": "application/json"}
        answer = await self.transport.send("POST", path, (), headers, body.encode())
        async for _ in answer.body:
            pass
        await answer.close()
        self.accepted += answer.status < 300

    async def patch(self, kind: Version, name: str, patch: Object) -> None:
        with suppress(KubeError):
            await self.client.patch(kind, SPACE, name, patch)

    async def delete(self, kind: Version, name: str, options: Object | None = None) -> None:
        with suppress(KubeError):
            await self.client.delete(kind, SPACE, name, options)

    async def delete_all(self, *kinds: Version) -> None:
        for kind in kinds:
            names = [each["metadata"]["name"] for each in await self.client.list(kind, SPACE)]
            await side_by_side(self.delete(kind, name, AT_ONCE) for name in names)


async def side_by_side(acts: Iterable[Awaitable[Any]]) -> None:
    """Await all, some at a time, and leave out what the server refuses."""
    waiting = iter(acts)

    async def work() -> None:
        for act in waiting:
            with suppress(KubeError):
                await act

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(work())


async def paced(a_second: float) -> AsyncIterator[int]:
    """Count up, at most so often a second."""
    clock, begun = asyncio.get_running_loop().time, asyncio.get_running_loop().time()
    for number in count():
        await asyncio.sleep(max(begun + number / a_second - clock(), 0.0))
        yield number


def reservation(name: str, kind: str, workload: str, group: str = "") -> Object:
    """A ClaimReservation of the claim ``name``."""
    spec = {
        "resourceClaimName": name,
        "workloadRef": {"apiGroup": group, "kind": kind, "name": workload},
    }
    return {**made(*RESERVATION, name, SPACE), "spec": spec}


def _of_itself(name: str) -> Object:
    return reservation(name, "ResourceClaim", name, "resource.k8s.io")


def _pod(name: str, claims: Iterable[str], **spec: Any) -> Object:
    named = [{"name": f"c{n}", "resourceClaimName": each} for n, each in enumerate(claims)]
    containers = [{"name": "main", "image": "x"}]
    body = {"containers": containers, "resourceClaims": named, **spec}
    return {**made(*POD, name, SPACE), "spec": body}


def _deployment(name: str, claims: Iterable[str] = (), reserve: str = "*") -> Object:
    body = made(*DEPLOYMENT, name, SPACE)
    body["metadata"]["annotations"] = {next(iter(RESERVE)): reserve}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _pod("", claims)["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {**body, "spec": spec}


def _fat(tenant: Tenant, name: str) -> Object:
    body = claim(tenant.fleet, SPACE, name)
    body["metadata"]["annotations"] = {"fat": FAT}
    return body


async def deep(tenant: Tenant, times: int) -> None:
    """Parameters that are nested more deeply than a decoder reads."""
    shapes = [('{"a":', n, "}") for n in (98, 700, 900, 1500)] + [("[", 4900, "]")]
    for number, (opening, levels, closing) in enumerate(shapes * times):
        name = f"deep-{number}"
        body, holder = claim(tenant.fleet, SPACE, name), {"opaque": {"driver": "deep.example.com"}}
        holder["opaque"]["parameters"] = "@"
        body["spec"]["devices"]["config"] = [holder]
        inner = opening * levels + "1" + closing * levels
        inner = inner if opening != "[" else f'{{"a":{inner}}}'
        await tenant.create([_of_itself(name)])
        await tenant.post(json.dumps(body).replace('"@"', inner), tenant.fleet.claims)


async def patched(tenant: Tenant, times: int) -> None:
    """A claim of 250 kB, followed as a workload, and changed 30 times a second."""
    names = [f"fat-{n}" for n in range(times)]
    await tenant.create(_of_itself(name) for name in names)
    await tenant.create(_fat(tenant, name) for name in names)
    async for number in paced(30 * times):
        label = {"metadata": {"labels": {"number": str(number)}}}
        await tenant.patch(tenant.fleet.claims, names[number % times], label)


async def gated(tenant: Tenant, times: int) -> None:
    """Gated pods with 5,000 distinct names of claims each."""

    async def life(number: int) -> None:
        names = (f"{number:08}-{n:05}-{'x' * 80}" for n in range(5000))
        await tenant.create([_pod(f"gated-{number}", names, schedulingGates=[{"name": "a/b"}])])
        await tenant.delete(POD, f"gated-{number}", AT_ONCE)

    async for number in paced(4):
        await side_by_side(life(number * times + each) for each in range(times))


async def fat(tenant: Tenant, times: int) -> None:
    """1,800 claims of 250 kB."""
    await tenant.create(_fat(tenant, f"fat-{n}") for n in range(1800 * times))


async def named(tenant: Tenant, times: int) -> None:
    """Four annotated Deployments with 5,000 claims that do not exist."""
    for number in range(4 * times):
        names = [f"c-{number}-{n}" for n in range(5000)]
        await tenant.create([_deployment(f"named-{number}", names)])


async def fan_out(tenant: Tenant, times: int) -> None:
    """2,000 ClaimReservations, and a pod that names all their claims, 6 times a second."""
    names = [[f"c-{number}-{n}" for n in range(2000)] for number in range(times)]
    await tenant.create(
        reservation(name, "Deployment", "none", "apps") for some in names for name in some
    )
    async for number in paced(6 * times):
        pod = _pod(f"fan-{number}", names[number % times], schedulingGates=[{"name": "a/b"}])
        await tenant.create([pod])
        await tenant.delete(POD, f"fan-{number}", AT_ONCE)


async def annotated(tenant: Tenant, times: int) -> None:
    """Eight Deployments with 45,000 names in the annotation, whose templates change."""
    reserve = ",".join(f"{n:x}" for n in range(45_000))  # an object may have 256 KiB of them
    names = [f"annotated-{n}" for n in range(8 * times)]
    await tenant.create(_deployment(name, reserve=reserve) for name in names)
    async for number in paced(4.5 * times):
        label = {"number": str(number)}
        patch = {"spec": {"template": {"metadata": {"annotations": label}}}}
        await tenant.patch(DEPLOYMENT, names[number % len(names)], patch)


async def ghosts(tenant: Tenant, times: int) -> None:
    """3,000 pods of one claim that vanish from nodes that never were."""
    await tenant.create([claim(tenant.fleet, SPACE, "haunted")])
    haunted = reservation("haunted", "ClaimReservation", "haunted", "claimctl.io")
    await tenant.create([haunted, _pod("first", ["haunted"])])
    await asyncio.sleep(5.0)
    grace = {"terminationGracePeriodSeconds": 86_400}

    async def vanish(number: int) -> None:
        name = f"ghost-{number}"
        pod = _pod(name, ["haunted"], nodeName=f"fake-{number}", **grace)
        await tenant.create([pod])
        await tenant.delete(POD, name, AT_ONCE)

    await side_by_side(vanish(number) for number in range(3000 * times))


async def never(tenant: Tenant, times: int) -> None:
    """Pods that vanish with a grace period that no status can name."""
    names = [f"never-{n}" for n in range(times)]
    await tenant.create(claim(tenant.fleet, SPACE, name) for name in names)
    for name in names:
        body = _deployment(name, [name])
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 2**31 - 1
        body["spec"]["replicas"] = 1
        await tenant.create([body])
    await asyncio.sleep(5.0)
    await tenant.delete_all(POD, DEPLOYMENT)


async def owned(tenant: Tenant, times: int) -> None:
    """200 pods whose owners have a name that no object can have."""
    for number in range(200 * times):
        pod = _pod(f"owned-{number}", [f"c-{number}"], schedulingGates=[{"name": "a/b"}])
        owner = {"apiVersion": "v1", "kind": "ReplicationController", "name": f"a/b{number}"}
        reference = {**owner, "uid": f"uid-{number}", "controller": True}
        pod["metadata"]["ownerReferences"] = [reference]
        await tenant.create([pod])


async def busy(tenant: Tenant, times: int) -> None:
    """3,000 ClaimReservations that change 100 times a second."""
    names = [f"busy-{n}" for n in range(3000 * times)]
    await tenant.create(reservation(name, "Deployment", "none", "apps") for name in names)

    async def change(number: int) -> None:
        spec = {"idleTimeoutSeconds": 60 + number % 1000}
        await tenant.patch(RESERVATION, names[number % len(names)], {"spec": spec})

    async for number in paced(10):
        await side_by_side(change(number * 10 + each) for each in range(10))


async def refused(tenant: Tenant, times: int) -> None:
    """A policy refuses every change of the namespace's claims, and the claims' pods change."""
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"]}
    rule["resources"] = ["resourceclaims", "resourceclaims/status"]
    match = {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"name": SPACE}}}
    validation = [{"expression": "!request.userInfo.username.contains('claimctl')"}]
    spec = {"matchConstraints": match, "validations": validation}
    binding = {"policyName": "refuses", "validationActions": ["Deny"]}
    names = [f"refused-{n}" for n in range(4 * times)]
    await tenant.patch(("v1", "Namespace"), SPACE, {"metadata": {"labels": {"name": SPACE}}})
    await tenant.create(claim(tenant.fleet, SPACE, name) for name in names)
    await tenant.create(
        [
            {**made(POLICY, "ValidatingAdmissionPolicy", "refuses"), "spec": spec},
            {**made(POLICY, "ValidatingAdmissionPolicyBinding", "refuses"), "spec": binding},
        ]
    )
    await asyncio.sleep(2.0)
    deployments = [_deployment(name, [name]) for name in names]
    for body in deployments:
        body["spec"]["replicas"] = 1
    await tenant.create(deployments)
    async for number in paced(10):
        replicas = {"spec": {"replicas": 1 + number % 3}}
        await tenant.patch(DEPLOYMENT, names[number % len(names)], replicas)


async def unknown(tenant: Tenant, times: int) -> None:
    """3,000 ClaimReservations, each of a kind of its own that does not exist."""
    await tenant.create(
        reservation(f"unknown-{n}", f"Kind{n}", "none", f"g{n}.example.com")
        for n in range(3000 * times)
    )


Harm = Callable[[Tenant, int], Coroutine[Any, Any, None]]
HARMS: dict[str, Harm] = {
    harm.__name__: harm
    for harm in (
        deep,
        patched,
        gated,
        fat,
        named,
        fan_out,
        annotated,
        ghosts,
        never,
        owned,
        busy,
        refused,
        unknown,
    )
}
ENDLESS = frozenset({"patched", "gated", "fan_out", "annotated", "busy", "refused"})
"""The harms that go on until they are cancelled; the others end when all objects are made."""
LEAVES_NOTHING = frozenset({"owned", "unknown"})
"""The harms of which nothing may be heard when their objects are gone."""
REAL_ONLY = frozenset({"deep", "refused"})
"""The harms that an embedded cluster cannot suffer: it refuses JSON of more than 100 levels, and
serves no ValidatingAdmissionPolicy."""
