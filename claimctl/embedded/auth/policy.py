"""The policy that a server brings with it: discovery, administrators, and the user-facing roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_WORKLOADS: dict[str, list[str]] = {
    "": [
        *("configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "pods/status"),
        *("pods/log", "serviceaccounts", "services", "services/status"),
    ],
    "apps": [
        *("controllerrevisions", "daemonsets", "deployments", "deployments/scale"),
        *("deployments/status", "replicasets", "replicasets/scale", "replicasets/status"),
        *("statefulsets", "statefulsets/scale", "statefulsets/status"),
    ],
    "batch": ["cronjobs", "jobs", "jobs/status"],
    "policy": ["poddisruptionbudgets", "poddisruptionbudgets/status"],
    "resource.k8s.io": ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"],
}
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_WELL_KNOWN = ["/.well-known", "/.well-known/*"]
_ISSUER = [
    *("/.well-known/openid-configuration", "/.well-known/openid-configuration/"),
    *("/openid/v1/jwks", "/openid/v1/jwks/"),
]
_DISCOVERY = sorted(["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC])


@dataclass(frozen=True, slots=True)
class Policy:
    roles: dict[str, Object]
    bindings: tuple[Object, ...]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _paths(paths: list[str]) -> Object:
    return {"nonResourceURLs": paths, "verbs": ["get"]}


def _workloads(verbs: list[str]) -> list[Object]:
    return [_rule(group, resources, verbs) for group, resources in _WORKLOADS.items()]


def _role(name: str, rules: list[Object], aggregates_to: str = "", gathers: str = "") -> Object:
    metadata: Object = {"name": name}
    if aggregates_to:
        metadata["labels"] = {f"{_LABEL}{aggregates_to}": "true"}
    role: Object = {"metadata": metadata, "rules": rules}
    if gathers:
        selector = {"matchLabels": {f"{_LABEL}{gathers}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _gathering(name: str, also: str = "") -> Object:
    """admin, edit and view hold what other roles add to them, and each the next lower one's."""
    return _role(name, [], aggregates_to=also, gathers=name)


def _binding(role: str, *groups: str) -> Object:
    return {
        "metadata": {"name": role},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "name": group} for group in groups],
    }


_ROLES = (
    _role("cluster-admin", [_rule("*", ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
    _gathering("admin"),
    _gathering("edit", also="admin"),
    _gathering("view", also="edit"),
    _role("system:aggregate-to-view", _workloads(_READ), aggregates_to="view"),
    _role(
        "system:aggregate-to-edit",
        [
            *_workloads(_WRITE),
            _rule("", ["secrets"], [*_READ, *_WRITE]),
            _rule("", ["pods/eviction"], ["create"]),
            _rule("coordination.k8s.io", ["leases"], [*_READ, *_WRITE]),
        ],
        aggregates_to="edit",
    ),
    _role(
        "system:aggregate-to-admin",
        [_rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], [*_READ, *_WRITE])],
        aggregates_to="admin",
    ),
    _role("system:discovery", [_paths(_DISCOVERY)]),
    _role("system:public-info-viewer", [_paths(_PUBLIC), _paths(_WELL_KNOWN)]),
    _role("system:service-account-issuer-discovery", [_paths(_ISSUER)]),
    _role(
        "system:basic-user",
        [
            _rule(
                "authorization.k8s.io",
                ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                ["create"],
            ),
            _rule("authentication.k8s.io", ["selfsubjectreviews"], ["create"]),
        ],
    ),
)

BOOTSTRAP = Policy(
    {role["metadata"]["name"]: role for role in _ROLES},
    (
        _binding("cluster-admin", "system:masters"),
        _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:service-account-issuer-discovery", "system:serviceaccounts"),
        _binding("system:basic-user", "system:authenticated"),
    ),
)
"""In force without being stored; a stored role of the same name takes its place."""
