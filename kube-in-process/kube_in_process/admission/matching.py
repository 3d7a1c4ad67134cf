"""Whether a policy, a binding or a webhook concerns a request: rules and selectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kube_in_process.admission.request import (
    GROUP,
    AdmissionRequest,
    AdmissionServer,
    namespace_of,
)
from kube_in_process.objects import Object
from kube_in_process.storage.selectors import selects

_UNGUARDED = (
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
)
"""Kinds that no admission concerns, so that a wrong one can be mended."""


def unguarded(request: AdmissionRequest) -> bool:
    return request.kind.group == GROUP and request.kind.plural in _UNGUARDED


def matched_version(
    server: AdmissionServer, match: Mapping[str, Any], request: AdmissionRequest
) -> str | None:
    """The version in which the objects are shown; None if ``match`` does not concern the request.

    ``match`` has the fields of MatchResources, or those of a webhook (``rules``).
    """
    if not _selected(server, match, request):
        return None
    equivalent = match.get("matchPolicy", "Equivalent") != "Exact"
    if _version(match.get("excludeResourceRules") or (), request, equivalent) is not None:
        return None
    rules = match["rules"] if "rules" in match else match.get("resourceRules")
    if not rules and "rules" not in match:
        # a binding without rules adds nothing to those of its policy
        return request.version
    return _version(rules or (), request, equivalent)


def _version(rules: Sequence[Object], request: AdmissionRequest, equivalent: bool) -> str | None:
    others = [version for version in request.kind.versions if version != request.version]
    version: str
    for version in (request.version, *(others if equivalent else ())):
        if any(_covers(rule, request, version) for rule in rules):
            return version
    return None


def _covers(rule: Object, request: AdmissionRequest, version: str) -> bool:
    scope = {True: "Namespaced", False: "Cluster"}[request.kind.namespaced]
    names = rule.get("resourceNames") or ()
    return (
        rule.get("scope", "*") in ("*", scope)
        and _has(rule.get("operations"), request.operation)
        and _has(rule.get("apiGroups"), request.kind.group)
        and _has(rule.get("apiVersions"), version)
        and any(_names(resource, request) for resource in rule.get("resources") or ())
        and (not names or request.name in names)
    )


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return "*" in (values or ()) or wanted in (values or ())


def _names(resource: str, request: AdmissionRequest) -> bool:
    plural, _, subresource = resource.partition("/")
    return plural in ("*", request.kind.plural) and (
        subresource == request.subresource or (subresource == "*")
    )


def _selected(server: AdmissionServer, match: Mapping[str, Any], request: AdmissionRequest) -> bool:
    return _in_namespaces(server, match.get("namespaceSelector"), request) and _is_chosen(
        match.get("objectSelector"), request
    )


def _in_namespaces(
    server: AdmissionServer, selector: Object | None, request: AdmissionRequest
) -> bool:
    """Objects of the cluster are in every namespace; a namespace is selected by its own labels."""
    if not selector or not any(selector.values()):
        return True
    if (request.kind.group, request.kind.plural) == ("", "namespaces"):
        shown = request.obj or request.old
    else:
        shown = namespace_of(server, request)
        if shown is None:
            return not request.kind.namespaced
    return selects(selector, (shown or {}).get("metadata", {}).get("labels") or {})


def _is_chosen(selector: Object | None, request: AdmissionRequest) -> bool:
    """Whether the selector matches the new object or the old one."""
    if not selector or not any(selector.values()):
        return True
    shown = [side for side in (request.obj, request.old) if side is not None]
    return any(
        selects(selector, (side.get("metadata") or {}).get("labels") or {}) for side in shown
    )
