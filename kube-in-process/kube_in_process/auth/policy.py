"""The built-in policy of every server: discovery, administrators, and the user-facing roles.

``policy.json`` has its ClusterRoles and ClusterRoleBindings. They apply without being stored; a
stored role of the same name replaces the built-in one.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.objects import Object
from kube_in_process.text.data import table


@dataclass(frozen=True, slots=True)
class _Policy:
    roles: tuple[Object, ...]
    bindings: tuple[Object, ...]


_POLICY = table(__package__, "policy.json", _Policy)
ROLES = {role["metadata"]["name"]: role for role in _POLICY.roles}
BINDINGS = _POLICY.bindings
