"""PodGroups and Workloads of scheduling.k8s.io."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError, Subject
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.conditions import condition_errors
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.store import Address
from kube_in_process.text import names

PROTECTION = "scheduling.k8s.io/podgroup-protection"
_GROUP = "scheduling.k8s.io"
_CLAIMS_LIMIT = 4
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_IMMUTABLE = ("schedulingPolicy", "resourceClaims", "podGroupTemplateRef", "workloadRef")


def _one_of(value: Object, keys: tuple[str, ...], path: str) -> list[FieldError]:
    given = [key for key in keys if value.get(key) is not None]
    listed = ", ".join(f"`{key}`" for key in keys)
    if not given:
        return [errors.invalid_value(path, "", f"must specify one of: {listed}")]
    if len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        return [errors.invalid_value(path, shown, f"must specify exactly one of: {listed}")]
    return []


def _policy(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("schedulingPolicy") or {}
    field_errors = _one_of(policy, ("basic", "gang"), path)
    gang = policy.get("gang")
    if field_errors or gang is None:
        return field_errors
    count = gang.get("minCount", 0)
    if count == 0:
        return [errors.required(f"{path}.gang.minCount")]
    if count < 1:
        text = "must be greater than or equal to 1"
        return [errors.invalid_value(f"{path}.gang.minCount", count, text)]
    return []


def _claims(claims: list[Object], base: str) -> list[FieldError]:
    if len(claims) > _CLAIMS_LIMIT:
        return [errors.too_many(base, len(claims), _CLAIMS_LIMIT)]
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        path, name = f"{base}[{index}]", claim.get("name", "")
        if name and name in seen:
            field_errors.append(errors.duplicate(path, claim))
        seen.add(name)
        field_errors += _one_of(claim, _SOURCES, path)
        if not name:
            field_errors.append(errors.required(f"{path}.name"))
        else:
            field_errors += errors.invalid_name(f"{path}.name", name, names.short_name)
        for key in _SOURCES:
            value = claim.get(key)
            if value is not None:
                field_errors += errors.invalid_name(f"{path}.{key}", value, names.long_name)
    return field_errors


class PodGroupStrategy(Strategy):
    """A PodGroup gets its protection finalizer at create. Fields of disabled gates are removed."""

    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        if features.version >= (1, 37):
            spec.setdefault("disruptionMode", {"single": {}})
        else:
            spec.setdefault("podGroupTemplateRef", None)
            spec["disruptionMode"] = "Pod"
        for key in ("priorityClassName", "priority"):
            spec.pop(key, None)
        if not spec.get("resourceClaims"):
            spec.pop("resourceClaims", None)
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {}
        if not context.features.api_group_claims:
            obj["spec"].pop("resourceClaims", None)
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if PROTECTION not in finalizers:
            finalizers.append(PROTECTION)

    def read_back(self, obj: Object) -> bool:
        """Return True: the first update of a group is stored even if it changes nothing."""
        return True

    def admit(self, obj: Object, context: WriteContext) -> None:
        reference = (obj["spec"].get("podGroupTemplateRef") or {}).get("workload")
        if reference is None:
            return
        meta = obj["metadata"]
        name, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
        address = Address(_GROUP, "workloads", meta.get("namespace", ""), name)
        workload = context.store.get(address)
        why = ""
        if workload is None:
            why = f'PodGroup rejected: Workload "{name}" not found'
        elif template not in [
            template["name"] for template in workload["spec"]["podGroupTemplates"]
        ]:
            missing = f'PodGroupTemplate "{template}"'
            why = f'PodGroup rejected: {missing} not found in Workload "{name}"'
        if why:
            raise errors.forbidden(Subject(_GROUP, "podgroups", meta.get("name", "")), why)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        return [
            *_policy(spec, "spec.schedulingPolicy"),
            *_claims(spec.get("resourceClaims") or [], "spec.resourceClaims"),
        ]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            conditions = new["status"].get("conditions") or []
            return [*_claim_statuses(new), *condition_errors(conditions, "status.conditions")]
        if context.features.version < (1, 37):
            return unchanged(new["spec"], old["spec"], _IMMUTABLE)
        fixed = unchanged(_without_count(new["spec"]), _without_count(old["spec"]), _IMMUTABLE)
        return [*fixed, *self.validate(new, context)]


def _without_count(spec: Object) -> Object:
    """The spec with a gang of any size: from 1.37 on minCount may change (the API module)."""
    policy = spec.get("schedulingPolicy") or {}
    return {**spec, "schedulingPolicy": {**policy, "gang": {}}} if policy.get("gang") else spec


def unchanged(new: Object, old: Object, fixed: tuple[str, ...]) -> list[FieldError]:
    """The errors of the fields of a spec that are fixed, and differ."""
    return [
        errors.invalid_text(f"spec.{key}", "null", "field is immutable")
        for key in fixed
        if (new.get(key) or None) != (old.get(key) or None)
    ]


def _claim_statuses(group: Object) -> list[FieldError]:
    known = {claim["name"] for claim in group["spec"].get("resourceClaims") or []}
    text = "must match the name of an entry in `spec.resourceClaims`"
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, status in enumerate(group["status"].get("resourceClaimStatuses") or []):
        path, name = f"status.resourceClaimStatuses[{index}]", status.get("name") or ""
        if name in seen:
            field_errors.append(errors.duplicate(path, status))
        seen.add(name)
        if name not in known:
            field_errors.append(errors.invalid_value(f"{path}.name", name, text))
        claim = status.get("resourceClaimName")
        if claim is not None:
            where = f"{path}.resourceClaimName"
            field_errors += errors.invalid_name(where, claim, names.long_name)
    return field_errors


class SchedulingWorkloadStrategy(Strategy):
    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        for template in obj.setdefault("spec", {}).get("podGroupTemplates") or []:
            template.setdefault("schedulingConstraints", None)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        fixed = unchanged(new["spec"], old["spec"], ("controllerRef", "podGroupTemplates"))
        if not new["spec"].get("podGroupTemplates"):
            fixed.append(errors.required("spec.podGroupTemplates"))
        return fixed

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        templates = obj["spec"].get("podGroupTemplates") or []
        path = "spec.podGroupTemplates"
        field_errors = _controller(obj["spec"].get("controllerRef"))
        field_errors += [] if templates else [errors.required(path)]
        seen: set[str] = set()
        for index, template in enumerate(templates):
            below, name = f"{path}[{index}]", template.get("name", "")
            if name in seen:
                field_errors.append(errors.duplicate(below, _in_order(template)))
            seen.add(name)
            if name:
                field_errors += errors.invalid_name(f"{below}.name", name, names.short_name)
            else:
                field_errors.append(errors.required(f"{below}.name"))
            field_errors += _policy(template, f"{below}.schedulingPolicy")
            field_errors += _claims(template.get("resourceClaims") or [], f"{below}.resourceClaims")
        return field_errors


def _controller(reference: Object | None) -> list[FieldError]:
    if reference is None:
        return []
    path, group = "spec.controllerRef", reference.get("apiGroup") or ""
    field_errors = errors.invalid_name(f"{path}.apiGroup", group, names.long_name) if group else []
    for key in ("kind", "name"):
        if not reference.get(key):
            field_errors.append(errors.required(f"{path}.{key}"))
        else:
            field_errors += errors.invalid_name(f"{path}.{key}", reference[key], names.path_segment)
    return field_errors


def _in_order(template: Object) -> Object:
    order = ("name", "schedulingPolicy", "schedulingConstraints", "resourceClaims")
    return {key: template[key] for key in order if key in template}
