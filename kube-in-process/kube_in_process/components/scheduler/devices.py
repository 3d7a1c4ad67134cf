"""DRA's structured allocation: which published devices satisfy claims on a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from kube_in_process.components.fit import node_matches, untolerated
from kube_in_process.components.objects import name
from kube_in_process.components.scheduler.selectors import attribute, selected
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Change, Views

Identity = tuple[str, str, str]
"""Driver, pool and name of a device."""

STEPS = 20_000
"""The most choices that are tried for one pod on one node."""


@dataclass(frozen=True, slots=True)
class Device:
    driver: str
    pool: str
    body: Object
    placement: Object
    """The part of the slice (or of the device) that names its nodes."""

    @property
    def identity(self) -> Identity:
        return self.driver, self.pool, self.body["name"]

    def on(self, node: Object) -> bool:
        if self.placement.get("allNodes"):
            return True
        if self.placement.get("nodeName"):
            return bool(self.placement["nodeName"] == name(node))
        selector = self.placement.get("nodeSelector")
        return selector is not None and node_matches(selector, node)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One way to satisfy a request of a claim. ``request`` is 'name' or 'name/subrequest'."""

    claim: int
    request: str
    body: Object

    @property
    def all_devices(self) -> bool:
        return self.body.get("allocationMode") == "All"

    @property
    def admin(self) -> bool:
        return bool(self.body.get("adminAccess"))


Chosen = list[tuple[DeviceRequest, Device]]


def devices_of(claim: Object) -> tuple[str, ...]:
    """Index values: 'driver/pool/device' of each allocated device, without admin access."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return tuple(
        "/".join((result["driver"], result["pool"], result["device"]))
        for result in results
        if not result.get("adminAccess")
    )


class Inventory:
    """The devices of the newest generation of each pool, and a search among them."""

    def __init__(self, views: Views) -> None:
        self._claims = views["resourceclaims"]
        self._slices = views["resourceslices"]
        self._classes = views["deviceclasses"]
        self._devices: list[Device] | None = None
        self._selected: dict[tuple[str, Identity], bool] = {}
        self._claims.index("device", devices_of)
        self._slices.subscribe(self._forget)

    def _forget(self, _: Change) -> None:
        self._devices = None
        self._selected.clear()

    def devices(self) -> list[Device]:
        if self._devices is None:
            self._devices = list(published(self._slices.items()))
        return self._devices

    def is_for_one_pod(self, claim: Object) -> bool:
        """Whether a device of the claim is a part of a node's own resource (KEP-5517, alpha)."""
        allocated = set(devices_of(claim))
        return any(
            resource.get("mapping") is not None
            for device in self.devices()
            if "/".join(device.identity) in allocated
            for resource in (device.body.get("nodeAllocatableResources") or {}).values()
        )

    def in_use(self, identity: Identity) -> bool:
        return self._claims.count("device", "/".join(identity)) > 0

    def allocate(
        self, claims: Sequence[Object], node: Object, taken: Collection[Identity]
    ) -> list[Object] | None:
        """An allocation for each claim on ``node``, or None; ``taken``: promised devices."""
        here = [device for device in self.devices() if device.on(node)]
        search = _Search(self, claims, here, taken)
        chosen = search.run()
        if chosen is None:
            return None
        return [_allocation(claim, index, chosen, node) for index, claim in enumerate(claims)]

    def suits(self, request: DeviceRequest, device: Device) -> bool:
        device_class = self._classes.get("", request.body["deviceClassName"])
        if device_class is None:
            return False
        selectors = [
            *(device_class["spec"].get("selectors") or ()),
            *(request.body.get("selectors") or ()),
        ]
        taints = device.body.get("taints") or ()
        if untolerated(taints, request.body.get("tolerations") or ()) is not None:
            return False
        return all(self._selects(selector["cel"]["expression"], device) for selector in selectors)

    def _selects(self, expression: str, device: Device) -> bool:
        key = (expression, device.identity)
        if key not in self._selected:
            self._selected[key] = selected(expression, device.driver, device.body)
        return self._selected[key]


def published(slices: Any) -> Iterator[Device]:
    """The devices of the newest generation of each pool; slices with binding conditions last."""
    ordered = sorted(slices, key=_has_conditions)
    newest: dict[tuple[str, str], int] = {}
    for published_slice in ordered:
        key = (published_slice["spec"]["driver"], published_slice["spec"]["pool"]["name"])
        newest[key] = max(newest.get(key, 0), published_slice["spec"]["pool"].get("generation", 0))
    for published_slice in ordered:
        spec = published_slice["spec"]
        driver, pool = spec["driver"], spec["pool"]["name"]
        if spec["pool"].get("generation", 0) < newest[driver, pool]:
            continue
        for device in spec.get("devices") or ():
            placement = device if spec.get("perDeviceNodeSelection") else spec
            yield Device(driver, pool, device, placement)


def _has_conditions(published: Object) -> bool:
    devices = published["spec"].get("devices") or ()
    return any(device.get("bindingConditions") for device in devices)


class _Search:
    """A depth-first search over the requests; the first fit in the slices' order wins."""

    def __init__(
        self,
        inventory: Inventory,
        claims: Sequence[Object],
        devices: list[Device],
        taken: Collection[Identity],
    ) -> None:
        self._inventory = inventory
        self._devices = devices
        self._taken = taken
        self._steps = STEPS
        self._constraints = [_constraints(claim) for claim in claims]
        self._slots = [slot for index, claim in enumerate(claims) for slot in _slots(index, claim)]

    def run(self) -> Chosen | None:
        return self._solve(0, [])

    def _solve(self, slot: int, chosen: Chosen) -> Chosen | None:
        if slot == len(self._slots):
            return chosen
        for request in self._slots[slot]:
            for devices in self._choices(request, chosen):
                self._steps -= 1
                if self._steps < 0:
                    return None
                more = [*chosen, *((request, device) for device in devices)]
                if self._allowed(request.claim, more):
                    solution = self._solve(slot + 1, more)
                    if solution is not None:
                        return solution
        return None

    def _choices(self, request: DeviceRequest, chosen: Chosen) -> Iterator[tuple[Device, ...]]:
        suitable = [device for device in self._devices if self._inventory.suits(request, device)]
        if request.admin:
            free = suitable
        else:
            used = {device.identity for other, device in chosen if not other.admin}
            free = [device for device in suitable if self._free(device.identity, used)]
        if not request.all_devices:
            yield from combinations(free, request.body.get("count") or 1)
        elif free and len(free) == len(suitable):
            yield tuple(free)

    def _free(self, identity: Identity, used: set[Identity]) -> bool:
        if identity in used or identity in self._taken:
            return False
        return not self._inventory.in_use(identity)

    def _allowed(self, claim: int, chosen: Chosen) -> bool:
        mine = [(request, device) for request, device in chosen if request.claim == claim]
        return all(_holds(constraint, mine) for constraint in self._constraints[claim])


def _spec(claim: Object) -> Object:
    spec: Object = (claim.get("spec") or {}).get("devices") or {}
    return spec


def _constraints(claim: Object) -> list[Object]:
    return list(_spec(claim).get("constraints") or ())


def _slots(index: int, claim: Object) -> Iterator[list[DeviceRequest]]:
    for request in _spec(claim).get("requests") or ():
        exactly = request.get("exactly")
        if exactly is not None:
            yield [DeviceRequest(index, request["name"], exactly)]
            continue
        yield [
            DeviceRequest(index, f"{request['name']}/{alternative['name']}", alternative)
            for alternative in request.get("firstAvailable") or ()
        ]


def _holds(constraint: Object, chosen: Chosen) -> bool:
    names = constraint.get("requests") or ()
    devices = [
        device
        for request, device in chosen
        if not names or request.request in names or request.request.split("/")[0] in names
    ]
    same, different = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    values = [attribute(device.body, device.driver, same or different or "") for device in devices]
    if any(value is None for value in values):
        return False
    return len(set(values)) == len(values) if different else len(set(values)) <= 1


def _allocation(claim: Object, index: int, chosen: Chosen, node: Object) -> Object:
    mine = [(request, device) for request, device in chosen if request.claim == index]
    allocation: Object = {"devices": {"results": [_result(*pair) for pair in mine]}}
    config = _spec(claim).get("config") or ()
    if config:
        allocation["devices"]["config"] = [{"source": "FromClaim", **entry} for entry in config]
    if any(device.body.get("bindsToNode") for _, device in mine):
        terms = _terms(iter([{"nodeName": name(node)}]))
    else:
        terms = _terms(device.placement for _, device in mine)
    if terms is not None:
        allocation["nodeSelector"] = terms
    return allocation


def _result(request: DeviceRequest, device: Device) -> Object:
    driver, pool, plain = device.identity
    result: Object = {
        "request": request.request,
        "driver": driver,
        "pool": pool,
        "device": plain,
    }
    if request.admin:
        result["adminAccess"] = True
    if request.body.get("tolerations"):
        result["tolerations"] = request.body["tolerations"]
    for key in ("bindingConditions", "bindingFailureConditions"):
        if device.body.get(key):
            result[key] = device.body[key]
    return result


def _terms(placements: Iterator[Mapping[str, Any]]) -> Object | None:
    """The node selector of an allocation: a device of one node can be used only there."""
    expressions: list[Any] = []
    for placement in placements:
        if placement.get("nodeName"):
            field = {"key": "metadata.name", "operator": "In", "values": [placement["nodeName"]]}
            return {"nodeSelectorTerms": [{"matchFields": [field]}]}
        for term in (placement.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            expressions += [x for x in term.get("matchExpressions") or () if x not in expressions]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]} if expressions else None
