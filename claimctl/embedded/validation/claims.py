"""ResourceClaims and their templates: what resource.k8s.io/v1 takes and refuses."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors, names
from claimctl.embedded.cel_syntax import syntax_error
from claimctl.embedded.defaults.claims import default_claim_spec
from claimctl.embedded.errors import FieldError, Subject
from claimctl.embedded.go_text import ALLOCATION, CLAIM_SPEC, go_text
from claimctl.embedded.hooks import Attributes
from claimctl.embedded.options import Features
from claimctl.embedded.strategy import Context
from claimctl.embedded.validation.betas import Converted

Object = dict[str, Any]
REQUESTS_LIMIT = 32
RESERVED_FOR_LIMIT = 256
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_GROUP, _VERSION = "resource.k8s.io", "v1"


class ClaimStrategy(Converted):
    """spec is immutable; the status obeys the rules of reservations."""

    def default(self, obj: Object, features: Features) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in ("reservedFor", "devices", "allocation"):
            if key in status and not status[key]:
                del status[key]
        for device in status.get("devices") or []:
            device["conditions"] = device.get("conditions") or None

    def prepare_create(self, obj: Object, context: Context) -> None:
        obj["status"] = {}
        _drop_gated(obj, {}, context.features)

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_update(new, old, context)
        _drop_gated(new, old, context.features)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        if context.subresource == "status":
            return [*_permission(new, old, context), *validate_status(new, old)]
        if new["spec"] == old["spec"]:
            return []
        shown = go_text(new["spec"], CLAIM_SPEC)
        return [
            errors.invalid_text("spec", shown, "field is immutable"),
            *validate_claim_spec(new["spec"], "spec"),
        ]


class TemplateStrategy(Converted):
    """A template's spec is a claim's metadata and spec, and immutable."""

    path = ("spec", "spec", "devices", "requests")

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("metadata", {})
        default_claim_spec(spec.setdefault("spec", {}))
        if not features.api_reserved_for:
            spec["spec"].pop("reservedFor", None)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return validate_claim_spec(obj["spec"]["spec"], "spec.spec")

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        if new["spec"] == old["spec"]:
            return []
        shown = errors.quoted(new["spec"])
        return [errors.invalid_text("spec", shown, "field is immutable")]


def _drop_gated(new: Object, old: Object, features: Features) -> None:
    """Fields of a gate that is off are dropped without a word, unless they are there already."""
    if features.api_reserved_for:
        return
    if "reservedFor" not in old.get("spec", {}):
        new["spec"].pop("reservedFor", None)
    allocation = new["status"].get("allocation")
    before = old.get("status", {}).get("allocation") or {}
    if allocation and "reservedForAnyPod" not in before:
        allocation.pop("reservedForAnyPod", None)


def validate_claim_spec(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with the spec of a claim."""
    found: list[FieldError] = []
    devices = spec["devices"]
    base = f"{path}.devices"
    requests = devices.get("requests") or []
    if len(requests) > REQUESTS_LIMIT:
        found.append(errors.too_many(f"{base}.requests", len(requests), REQUESTS_LIMIT))
    else:
        found += _requests(requests, f"{base}.requests")
    known = _request_names(requests)
    for index, constraint in enumerate(devices.get("constraints") or []):
        found += _constraint(constraint, known, f"{base}.constraints[{index}]")
    if spec.get("reservedFor") is not None:
        found += _reference(spec["reservedFor"], f"{path}.reservedFor")
    return found


def _request_names(requests: list[Object]) -> set[str]:
    known: set[str] = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known |= {f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable") or []}
    return known


def _requests(requests: list[Object], base: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path = f"{base}[{index}]"
        name = request.get("name", "")
        if name in seen:
            found.append(errors.duplicate(path, name))
        seen.add(name)
        found += [errors.invalid_value(f"{path}.name", name, t) for t in names.label(name)]
        found += _alternatives(request, path)
    return found


def _alternatives(request: Object, path: str) -> list[FieldError]:
    exactly, several = request.get("exactly"), request.get("firstAvailable")
    if exactly is not None and several:
        text = f"{_ONE_OF}, but multiple fields are set"
        return [errors.invalid_text(path, "null", text)]
    if exactly is None and not several:
        return [errors.required(path, _ONE_OF)]
    if exactly is not None:
        return _request(exactly, f"{path}.exactly")
    found: list[FieldError] = []
    for index, each in enumerate(several or []):
        below = f"{path}.firstAvailable[{index}]"
        name = each.get("name", "")
        found += [errors.invalid_value(f"{below}.name", name, t) for t in names.label(name)]
        found += _request(each, below)
    return found


def _request(request: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    class_name = request.get("deviceClassName", "")
    if not class_name:
        found.append(errors.required(f"{path}.deviceClassName"))
    else:
        found += [
            errors.invalid_value(f"{path}.deviceClassName", class_name, text)
            for text in names.subdomain(class_name)
        ]
    return [*found, *_selectors(request.get("selectors") or [], path), *_mode(request, path)]


def _selectors(selectors: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, selector in enumerate(selectors):
        below = f"{path}.selectors[{index}].cel"
        expression = (selector.get("cel") or {}).get("expression")
        if not expression:
            missing = below if "cel" not in selector else f"{below}.expression"
            found.append(errors.required(missing))
        elif problem := syntax_error(expression):
            found.append(errors.invalid_value(f"{below}.expression", expression, problem))
    return found


def _mode(request: Object, path: str) -> list[FieldError]:
    mode, count = request.get("allocationMode"), request.get("count", 0)
    if mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        return [errors.invalid_value(f"{path}.count", count, text)]
    if mode == "ExactCount" and count <= 0:
        return [errors.invalid_value(f"{path}.count", count, "must be greater than zero")]
    if mode not in ("All", "ExactCount"):
        supported = ("All", "ExactCount")
        return [errors.not_supported(f"{path}.allocationMode", mode, supported)]
    return []


def _constraint(constraint: Object, known: set[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, name in enumerate(constraint.get("requests") or []):
        if name not in known:
            where = f"{path}.requests[{index}]"
            found.append(errors.invalid_value(where, name, _UNKNOWN_REQUEST))
    attribute = constraint.get("matchAttribute")
    if attribute is None:
        found.append(errors.required(f"{path}.matchAttribute"))
    elif "/" not in attribute:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        found.append(errors.invalid_value(f"{path}.matchAttribute", attribute, text))
    return found


def _reference(reference: Object, path: str) -> list[FieldError]:
    wanted = ("resource", "name", "uid")
    return [errors.required(f"{path}.{key}") for key in wanted if not reference.get(key)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """What is wrong with a change of a claim's status."""
    found: list[FieldError] = []
    status, before = new["status"], old["status"]
    allocation, references = status.get("allocation"), status.get("reservedFor") or []
    if len(references) > RESERVED_FOR_LIMIT:
        found.append(errors.too_many("status.reservedFor", len(references), RESERVED_FOR_LIMIT))
    else:
        found += _references(references)
    found += _reservations(status, before, bool(new["metadata"].get("deletionTimestamp")))
    if allocation:
        found += _allocation(allocation, new["spec"])
    if allocation and before.get("allocation") and allocation != before["allocation"]:
        shown = go_text(allocation, ALLOCATION)
        found.append(errors.invalid_text("status.allocation", shown, "field is immutable"))
    return found


def _references(references: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, reference in enumerate(references):
        path = f"status.reservedFor[{index}]"
        found += _reference(reference, path)
        uid = reference.get("uid", "")
        if uid and uid in seen:
            found.append(errors.duplicate(path, uid))
        seen.add(uid)
    return found


def _reservations(status: Object, before: Object, deleting: bool) -> list[FieldError]:
    references = status.get("reservedFor") or []
    path = "status.reservedFor"
    if references and not status.get("allocation"):
        text = "may not be specified when `allocated` is not set"
        return [errors.forbidden_field(path, text)]
    old = before.get("reservedFor") or []
    if deleting and any(reference not in old for reference in references):
        text = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
            "are set"
        )
        return [errors.forbidden_field(path, text)]
    return []


def _allocation(allocation: Object, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    known = _request_names(spec["devices"].get("requests") or [])
    results = (allocation.get("devices") or {}).get("results") or []
    for index, result in enumerate(results):
        found += _result(result, known, f"status.allocation.devices.results[{index}]")
    return found


def _result(result: Object, known: set[str], path: str) -> list[FieldError]:
    request, device = result.get("request", ""), result.get("device", "")
    found = [
        errors.invalid_value(f"{path}.request", request, text)
        for part in request.split("/")
        for text in names.label(part)
    ]
    if request not in known:
        found.append(errors.invalid_value(f"{path}.request", request, _UNKNOWN_REQUEST))
    found += [errors.required(f"{path}.{key}") for key in ("driver", "pool") if not result.get(key)]
    found += [errors.invalid_value(f"{path}.device", device, t) for t in names.label(device)]
    return found


def _permission(new: Object, old: Object, context: Context) -> list[FieldError]:
    """From 1.36 a write to the status needs more than resourceclaims/status."""
    if context.internal or not context.features.binding_permission:
        return []
    verb = "update" if context.verb == "update" else "patch"
    status, before = new["status"], old["status"]
    found: list[FieldError] = []
    if any(status.get(key) != before.get(key) for key in ("allocation", "reservedFor")):
        found += _binding_permission(context, verb)
    if status.get("devices") != before.get("devices"):
        found += _driver_permission(context, new, _drivers(status, before), verb)
    return found


def _binding_permission(context: Context, verb: str) -> list[FieldError]:
    asked = Attributes(context.actor, verb, _GROUP, _VERSION, "resourceclaims", "binding")
    if context.api.hooks.authorizer.allowed(asked):
        return []
    subject = Subject(_GROUP, "resourceclaims")
    text = (
        "changing status.allocation or status.reservedFor requires "
        f'resource="resourceclaims/binding", verb="{verb}" permission: {subject.resource} is '
        f'forbidden: User "{context.actor.user}" cannot {verb} resource '
        f'"resourceclaims/binding" in API group "{_GROUP}" at the cluster scope'
    )
    return [errors.forbidden_field("status.allocation", text)]


def _drivers(status: Object, before: Object) -> list[str]:
    old, new = before.get("devices") or [], status.get("devices") or []
    changed = [each for each in new if each not in old] + [each for each in old if each not in new]
    return sorted({str(each.get("driver", "")) for each in changed})


def _driver_permission(
    context: Context, claim: Object, drivers: list[str], verb: str
) -> list[FieldError]:
    namespace = claim["metadata"]["namespace"]
    asked = f"arbitrary-node:{verb}"
    for driver in drivers:
        attributes = Attributes(
            context.actor, asked, _GROUP, _VERSION, "resourceclaims", "driver", namespace, driver
        )
        if not context.api.hooks.authorizer.allowed(attributes):
            text = (
                f'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{asked}]" permission: resourceclaims.{_GROUP} "{driver}" is forbidden: '
                f'User "{context.actor.user}" cannot {asked} resource "resourceclaims/driver" in '
                f'API group "{_GROUP}" in the namespace "{namespace}"'
            )
            return [errors.forbidden_field("status.devices", text)]
    return []
