"""Validation of roles and bindings."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.metadata import validate_again
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")


class RuledStrategy(Strategy):
    """Roles and ClusterRoles."""

    name_check = staticmethod(names.path_segment)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or []):
            field_errors += _rule(rule, f"rules[{index}]", namespaced=context.kind.namespaced)
        aggregation = obj.get("aggregationRule")
        if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
            text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            field_errors.append(errors.required("aggregationRule.clusterRoleSelectors", text))
        for index, selector in enumerate((aggregation or {}).get("clusterRoleSelectors") or []):
            path = f"aggregationRule.clusterRoleSelectors[{index}]"
            wrong = label_selector(selector, path)
            field_errors += wrong
            if wrong:
                field_errors.append(errors.invalid_value(path, None, "invalid label selector."))
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return _again(self, self.validate(new, context), new, context)


def _again(
    strategy: Strategy, field_errors: list[FieldError], new: Object, context: WriteContext
) -> list[FieldError]:
    """Before 1.35, an update checks everything twice, also the metadata."""
    if context.features.version >= (1, 35):
        return field_errors
    return [*field_errors, *validate_again(new["metadata"], strategy), *field_errors]


def _rule(rule: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    field_errors: list[FieldError] = []
    if not rule.get("verbs"):
        text = "verbs must contain at least one value"
        field_errors.append(errors.required(f"{path}.verbs", text))
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            field_errors.append(errors.invalid_value(where, urls, text))
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            field_errors.append(errors.invalid_value(where, urls, text))
        return field_errors
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        field_errors.append(errors.required(f"{path}.apiGroups", text))
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        field_errors.append(errors.required(f"{path}.resources", text))
    return field_errors


class BindingStrategy(Strategy):
    """The role of a binding is immutable; its subjects may change."""

    name_check = staticmethod(names.path_segment)

    def default(self, obj: Object, features: Features) -> None:
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or []:
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        kinds = ("Role", "ClusterRole") if context.kind.namespaced else ("ClusterRole",)
        field_errors = _role_reference(obj["roleRef"], kinds)
        for index, subject in enumerate(obj.get("subjects") or []):
            field_errors += _subject(
                subject, f"subjects[{index}]", namespaced=context.kind.namespaced
            )
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors = _again(self, self.validate(new, context), new, context)
        if new["roleRef"] != old["roleRef"]:
            shown = {
                go_name: new["roleRef"].get(key, "")
                for go_name, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
            }
            error = errors.invalid_value("roleRef", shown, "cannot change roleRef")
            return [*field_errors, error]
        return field_errors


def _role_reference(role: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    field_errors: list[FieldError] = []
    if role.get("apiGroup") != GROUP:
        field_errors.append(
            errors.not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,))
        )
    if role.get("kind") not in kinds:
        field_errors.append(errors.not_supported("roleRef.kind", role.get("kind", ""), kinds))
    name = role.get("name", "")
    if not name:
        return [*field_errors, errors.required("roleRef.name")]
    return [*field_errors, *errors.invalid_name("roleRef.name", name, names.path_segment)]


def _subject(subject: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    field_errors = [] if name else [errors.required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            field_errors += errors.invalid_name(f"{path}.name", name, names.subdomain)
        if group:
            field_errors.append(errors.not_supported(f"{path}.apiGroup", group, ("",)))
        if not subject.get("namespace") and not namespaced:
            field_errors.append(errors.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            field_errors.append(errors.not_supported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        field_errors.append(errors.not_supported(f"{path}.kind", kind, _KINDS))
    return field_errors
