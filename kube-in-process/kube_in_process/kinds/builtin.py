"""The built-in kinds; ``builtin.json`` has those of v1.36's discovery documents."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from kube_in_process.kinds.kind import Kind, Kinds
from kube_in_process.options import Features
from kube_in_process.text.data import table

RESIZE_SINCE = (1, 33)
"""The first version in which pods/resize is on by default."""
_POD_GROUPS = ("podgroups", "workloads")
_MUTATING_POLICIES = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
"""Served by default from 1.36 on."""
_COMPOSITE_GROUPS = "compositepodgroups"
_LIFECYCLE = "lifecycle.k8s.io"
_TAINT_RULES = "devicetaintrules"


def builtin_kinds(features: Features) -> Kinds:
    """The kinds that a server with these gates serves, without CustomResourceDefinitions."""
    served = (kind for kind in _table() if _is_served(kind, features))
    return Kinds(tuple(_of_release(kind, features) for kind in served))


def _is_served(kind: Kind, features: Features) -> bool:
    if kind.plural in _POD_GROUPS:
        return features.api_pod_groups
    if kind.plural == _COMPOSITE_GROUPS:
        return features.composite_pod_groups
    if kind.group == _LIFECYCLE:
        return features.eviction_requests
    if kind.plural == _TAINT_RULES:
        return features.taint_rules
    return kind.plural not in _MUTATING_POLICIES or features.version >= (1, 36)


@lru_cache(maxsize=1)
def _table() -> tuple[Kind, ...]:
    return table(__package__, "builtin.json", tuple[Kind, ...])


def _of_release(kind: Kind, features: Features) -> Kind:
    release = features.version
    if kind.plural in _POD_GROUPS:
        return replace(kind, versions=_group_versions(features))
    if kind.group == "resource.k8s.io" and kind.plural != _TAINT_RULES:
        # 1.34 serves v1 and stores v1beta2.
        hashed_as = "v1beta2" if release == (1, 34) else ""
        return replace(kind, versions=_dra_versions(release), hashed_as=hashed_as)
    if kind.resource == "pods" and release < RESIZE_SINCE:
        return replace(kind, subresources=tuple(s for s in kind.subresources if s != "resize"))
    return kind


def _group_versions(features: Features) -> tuple[str, ...]:
    """The served versions of PodGroups: v1 from 1.38 on, with the shape of v1beta1."""
    if features.version < (1, 37):
        return ("v1alpha2",)
    stable = ("v1",) if features.version >= (1, 38) else ()
    return (*stable, "v1beta1", *(("v1alpha3",) if features.composite_pod_groups else ()))


def _dra_versions(release: tuple[int, int]) -> tuple[str, ...]:
    """The served versions: v1 from 1.34 on, before that the betas (switched on here)."""
    if release >= (1, 34):
        return ("v1",)
    return ("v1beta2", "v1beta1") if release >= (1, 33) else ("v1beta1",)
