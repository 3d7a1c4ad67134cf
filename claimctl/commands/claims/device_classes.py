"""Claims and the pods that wait, by device class: who has such devices, who needs them, and whether
the idle ones can be enough."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.reservation.facts.pods import claim_names, is_done, is_stuck
from claimctl.text import counted
from claimctl.wire import claims as wire
from claimctl.wire.base import Wire
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import RESOURCECLAIMS, RESOURCESLICES, read_as


class AskedRequest(Wire, frozen=True, kw_only=True):
    """What a request asks for, or an alternative of its ``firstAvailable``."""

    name: str = ""
    device_class_name: str = ""
    allocation_mode: str = ""
    """'' or ExactCount: it asks for ``count`` devices."""
    count: int = 1
    admin_access: bool = False


class ClaimRequest(AskedRequest, frozen=True, kw_only=True):
    """A request of a claim. v1 has the fields below ``exactly``, v1beta1 in the request."""

    exactly: AskedRequest | None = None
    first_available: tuple[AskedRequest, ...] = ()


class ClaimRequests(Wire, frozen=True, kw_only=True):
    requests: tuple[ClaimRequest, ...] = ()


class AskingClaimSpec(wire.ResourceClaimSpec, frozen=True, kw_only=True):
    devices: ClaimRequests = ClaimRequests()


class AskingClaim(wire.ResourceClaim, frozen=True, kw_only=True):
    """A claim with its requests."""

    spec: AskingClaimSpec = AskingClaimSpec()


class SharedDevice(wire.Device, frozen=True, kw_only=True):
    allow_multiple_allocations: bool = False


class CountedSliceSpec(wire.ResourceSliceSpec, frozen=True, kw_only=True):
    devices: tuple[SharedDevice, ...] | None = None


class CountedSlice(wire.ResourceSlice, frozen=True, kw_only=True):
    """A ResourceSlice whose devices can be counted."""

    spec: CountedSliceSpec = CountedSliceSpec()


_DRIVER = re.compile(r"""\bdevice\.driver\s*==\s*(["'])([^"'\\]*)\1""")
CLAIMS_WITH_REQUESTS = read_as(RESOURCECLAIMS, AskingClaim)
PUBLISHED_DEVICES = read_as(RESOURCESLICES, CountedSlice)


def drivers_in(expression: str) -> frozenset[str]:
    """The drivers with which an expression of a selector compares ``device.driver``."""
    return frozenset(match[2] for match in _DRIVER.finditer(expression))


def device_classes(claim: AskingClaim) -> frozenset[str]:
    """The classes by which the claim has its devices; if it has none, those it asks for.

    The results of an allocation name an alternative of ``firstAvailable`` as request/alternative.
    v1 has the class below ``exactly``, v1beta1 in the request. A request with ``adminAccess`` takes
    devices from nobody.
    """
    requests = [
        (name, part)
        for request in claim.spec.devices.requests
        for name, part in (
            (request.name, request),
            (request.name, request.exactly),
            *((f"{request.name}/{choice.name}", choice) for choice in request.first_available),
        )
        if part is not None and part.device_class_name and not part.admin_access
    ]
    met = {device.request for device in claim.devices}
    return frozenset(
        part.device_class_name
        for name, part in requests
        if claim.status.allocation is None or name in met
    )


def waiting_pods(
    claims: Collection[AskingClaim], pods: Iterable[Pod]
) -> dict[str, tuple[str, ...]]:
    """By UID of a claim with devices: the pods, as namespace/name, that wait for such devices.

    A scheduler has found no node for such a pod, and a claim of the pod has no devices and asks for
    a class of these. Only the scheduler knows whether these devices would do: the pod may need
    others of the class, or more than devices.
    """
    asked = {
        claim.metadata.key: device_classes(claim)
        for claim in claims
        if claim.status.allocation is None and not claim.metadata.deleting
    }
    waiting: dict[str, set[str]] = {}
    for pod in pods:
        meta = pod.metadata
        for name in claim_names(pod) if is_stuck(pod) and not is_done(pod) else ():
            for device_class in asked.get((meta.namespace, name), ()):
                waiting.setdefault(device_class, set()).add(f"{meta.namespace}/{meta.name}")
    return {
        claim.metadata.uid: tuple(
            sorted({pod for name in device_classes(claim) for pod in waiting.get(name, ())})
        )
        for claim in claims
        if claim.status.allocation is not None
    }


async def everywhere(client: Client, resource: Any, namespace: str) -> tuple[Any, ...]:
    """The objects of all namespaces; if the user may not list them, those of ``namespace``."""
    for where in ("", namespace):
        try:
            return (await client.list(resource, where, partial=True)).items
        except Forbidden:
            continue
        except NotFound:
            break
    return ()


def shortfall(
    wanted: Iterable[AskingClaim],
    idle: AskingClaim,
    busy: Iterable[ResourceClaim],
    slices: Iterable[CountedSlice],
) -> str | None:
    """Why a pod would not get all devices on the node of an idle claim, if all idle ones were free.

    Only the scheduler knows whether devices are enough. This says when their number cannot be.

    Args:
        wanted: the pod's claims that have no devices.
        busy: the claims whose devices pods use.

    Returns:
        None if the devices may be enough, or if their number is not known.
    """
    drivers = {device.driver for device in idle.devices}
    pools = {(device.driver, device.pool) for device in idle.devices}
    published = [piece.spec for piece in slices if piece.spec.driver in drivers]
    nodes = {spec.node_name for spec in published if (spec.driver, spec.pool.name) in pools}
    shared = (device.allow_multiple_allocations for it in published for device in it.devices or ())
    if len(nodes) != 1 or not all(spec.node_name for spec in published) or any(shared):
        return None
    (node,) = nodes
    here = {
        (spec.driver, spec.pool.name, device.name)
        for spec in published
        if spec.node_name == node
        for device in spec.devices or ()
    }
    taken = (it for claim in busy for it in claim.devices if not it.admin_access)
    used = {(it.driver, it.pool, it.device) for it in taken}
    asked = sum(_least(claim, device_classes(idle)) for claim in wanted)
    if asked <= len(here - used):
        return None
    return (
        f"the pod asks for {counted(asked, 'such device')}, and node {node} has "
        f"{len(here)}, {len(here & used)} of them in use"
    )


def _least(claim: AskingClaim, classes: Collection[str]) -> int:
    """How many devices of these classes the claim takes at least, whatever alternative it gets."""
    exact = (request.exactly or request for request in claim.spec.devices.requests)
    return sum(it.count for it in exact if it.device_class_name in classes and not it.admin_access)
