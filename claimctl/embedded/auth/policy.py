"""The policy that a server brings with it: discovery, administrators, and the user-facing roles.

``policy.json`` holds its ClusterRoles and ClusterRoleBindings. They are in force without being
stored; a stored role of the same name takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.embedded.text.data import table
from claimctl.wire.base import Object


@dataclass(frozen=True, slots=True)
class _Policy:
    roles: tuple[Object, ...]
    bindings: tuple[Object, ...]


_POLICY = table(__package__, "policy.json", _Policy)
ROLES = {role["metadata"]["name"]: role for role in _POLICY.roles}
BINDINGS = _POLICY.bindings
