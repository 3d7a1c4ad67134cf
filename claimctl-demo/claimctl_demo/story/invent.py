"""Invents the DeviceClasses and devices that a user's manifests ask for.

The CEL of selectors is searched for common expressions: a driver's name, attributes compared with
literals, capacities compared with quantities. A claim that asks for more gets no device, and the
report says that its pods are pending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from claimctl.wire.base import Object
from claimctl_demo.story.manifests import Manifest

API = "resource.k8s.io/v1"
MOST_DEVICES = 128
"""The largest number of devices in one ResourceSlice."""

_QUOTED = r"""["']([^"']+)["']"""
_DRIVER = re.compile(rf"device\.driver\s*==\s*{_QUOTED}")
_MEMBER = rf"device\.%s\[{_QUOTED}\](?:\.(\w+)|\[{_QUOTED}\])"
_ATTRIBUTE = re.compile(
    _MEMBER % "attributes" + rf"\s*(?:==|>=|<=|in)\s*\[?\s*(?:{_QUOTED}|(true|false)|(-?\d+))"
)
_VERSION = re.compile(
    _MEMBER % "attributes" + rf"\.(?:compareTo|isGreaterThan)\(semver\({_QUOTED}\)"
)
_CAPACITY = re.compile(
    _MEMBER % "capacity"
    + rf"(?:\.(compareTo|isGreaterThan)\(|\s*(?:==|>=)\s*)quantity\({_QUOTED}\)"
)


@dataclass(frozen=True, slots=True)
class Model:
    """One kind of device, and how many of them a node needs at most."""

    driver: str
    attributes: tuple[tuple[str, Any], ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class _Request:
    """A device request, and how many claims have it."""

    device_class: str
    expressions: tuple[str, ...]
    count: int


def invented(manifests: Sequence[Manifest], nodes: Sequence[str], api: str = API) -> list[Object]:
    """DeviceClasses that the manifests do not define, and ResourceSlices for all requests.

    Args:
        api: the version of resource.k8s.io that the cluster serves.
    """
    own = {each.name: each.body for each in manifests if each.kind == "DeviceClass"}
    requests = list(_requests(manifests))
    models = [_model(each, own.get(each.device_class)) for each in requests]
    drivers: dict[str, dict[str, None]] = {}
    for request, model in zip(requests, models, strict=True):
        if request.device_class not in own:
            drivers.setdefault(request.device_class, {})[model.driver] = None
    kinds = _merged(models)
    slices = [
        _slice(node, driver, [kind for kind in kinds if kind.driver == driver], api)
        for driver in dict.fromkeys(kind.driver for kind in kinds)
        for node in nodes
    ]
    classes = (_device_class(name, list(found), api) for name, found in drivers.items())
    return [*classes, *slices]


def _requests(manifests: Sequence[Manifest]) -> Iterator[_Request]:
    users = _template_users(manifests)
    for each in manifests:
        spec = _part(each.body, "spec")
        times = 1
        if each.kind == "ResourceClaimTemplate":
            spec = _part(spec, "spec")
            times = max(users.get((each.namespace, each.name), 0), 1)
        elif each.kind != "ResourceClaim":
            continue
        for request in _items(_part(spec, "devices"), "requests"):
            for way in _ways(request):
                yield _request(way, times)


def _ways(request: Object) -> list[Object]:
    """The request or its alternatives; also in the form of v1beta1."""
    if request.get("exactly"):
        return [request["exactly"]]
    return _items(request, "firstAvailable") or [request]


def _request(way: Object, times: int) -> _Request:
    count = way.get("count")
    return _Request(
        device_class=str(way.get("deviceClassName", "")),
        expressions=tuple(_expressions(way)),
        count=times * (count if isinstance(count, int) and count > 0 else 1),
    )


def _expressions(holder: Object) -> Iterator[str]:
    for selector in _items(holder, "selectors"):
        expression = _part(selector, "cel").get("expression")
        if isinstance(expression, str):
            yield expression


def _template_users(manifests: Sequence[Manifest]) -> dict[tuple[str, str], int]:
    """How many claims are created from each template: one for each pod that names it."""
    users: dict[tuple[str, str], int] = {}
    for each in manifests:
        pods, spec = pods_of(each)
        for claim in _items(spec, "resourceClaims"):
            key = (each.namespace, str(claim.get("resourceClaimTemplateName")))
            users[key] = users.get(key, 0) + pods
    return users


def pods_of(manifest: Manifest) -> tuple[int, Object]:
    """How many pods an object makes at once (0: none), and their spec."""
    spec = _part(manifest.body, "spec")
    match manifest.kind:
        case "Pod":
            return 1, spec
        case "Deployment" | "StatefulSet" | "ReplicaSet":
            return _number(spec, "replicas"), _part(_part(spec, "template"), "spec")
        case "Job":
            pods = min(_number(spec, "parallelism"), _number(spec, "completions", 1 << 20))
            return pods, _part(_part(spec, "template"), "spec")
    return 0, {}


def _model(request: _Request, device_class: Object | None) -> Model:
    """A device that matches the request and its DeviceClass."""
    of_class = list(_expressions(_part(device_class or {}, "spec")))
    text = " && ".join([*request.expressions, *of_class])
    found = _DRIVER.search(text)
    named = next((match.group(1) for match in _ATTRIBUTE.finditer(text)), "")
    driver = found.group(1) if found else named or request.device_class
    return Model(
        driver=driver,
        attributes=tuple(sorted(_attributes(text, driver).items())),
        capacity=tuple(sorted(_capacity(text, driver).items())),
        count=request.count,
    )


def _attributes(text: str, driver: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for match in _ATTRIBUTE.finditer(text):
        domain, plain, quoted, string, boolean, number = match.groups()
        found.setdefault(
            _qualified(domain, plain or quoted, driver), _value(string, boolean, number)
        )
    for match in _VERSION.finditer(text):
        domain, plain, quoted, version = match.groups()
        found.setdefault(_qualified(domain, plain or quoted, driver), version)
    return found


def _value(string: str | None, boolean: str | None, number: str | None) -> Any:
    if string is not None:
        return string
    return boolean == "true" if boolean else int(number or "0")


def _capacity(text: str, driver: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _CAPACITY.finditer(text):
        domain, plain, quoted, method, amount = match.groups()
        value = _more_than(amount) if method == "isGreaterThan" else amount
        found.setdefault(_qualified(domain, plain or quoted, driver), value)
    return found


def _more_than(amount: str) -> str:
    """The next whole number of the same unit."""
    number = re.match(r"\d+", amount)
    return f"{int(number.group()) + 1}{amount[number.end() :]}" if number else amount


def _qualified(domain: str, name: str, driver: str) -> str:
    """The name of an attribute or capacity; without its domain if that is the driver."""
    return name if domain == driver else f"{domain}/{name}"


def _merged(models: Iterable[Model]) -> list[Model]:
    """Each kind of device once, with the sum of its counts."""
    counts: dict[Model, int] = {}
    for model in models:
        alike = replace(model, count=0)
        counts[alike] = counts.get(alike, 0) + model.count
    return [replace(model, count=count) for model, count in counts.items()]


def _device_class(name: str, drivers: Sequence[str], api: str) -> Object:
    """A DeviceClass that matches the devices invented for it."""
    expression = " || ".join(f"device.driver == '{driver}'" for driver in drivers)
    return {
        "apiVersion": api,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _slice(node: str, driver: str, models: Sequence[Model], api: str) -> Object:
    devices = [
        _device(f"dev-{kind}-{number}", model, api)
        for kind, model in enumerate(models)
        for number in range(model.count)
    ]
    return {
        "apiVersion": api,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices[:MOST_DEVICES],
        },
    }


def _device(name: str, model: Model, api: str) -> Object:
    """A device. In v1beta1, its attributes and capacities are in the field ``basic``."""
    body: Object = {}
    if model.attributes:
        body["attributes"] = {key: {_form(value): value} for key, value in model.attributes}
    if model.capacity:
        body["capacity"] = {key: {"value": value} for key, value in model.capacity}
    return {"name": name, **({"basic": body} if api.endswith("v1beta1") else body)}


def _form(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "version" if re.fullmatch(r"\d+\.\d+\.\d+\S*", value) else "string"


def _part(body: Object, key: str) -> Object:
    found = body.get(key)
    return found if isinstance(found, dict) else {}


def _items(body: Object, key: str) -> list[Object]:
    found = body.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _number(spec: Object, key: str, default: int = 1) -> int:
    found = spec.get(key, default)
    return found if isinstance(found, int) else default
