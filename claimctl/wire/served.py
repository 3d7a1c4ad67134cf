"""What an API server serves: its version, the versions of a group, their resources."""

from __future__ import annotations

from claimctl.wire.base import Wire


class GroupVersion(Wire, frozen=True, kw_only=True):
    version: str = ""


class ApiGroup(Wire, frozen=True, kw_only=True):
    name: str = ""
    versions: tuple[GroupVersion, ...] | None = None
    """The preferred version first; None if the answer has none."""
    preferred_version: GroupVersion = GroupVersion()

    @property
    def in_order(self) -> tuple[str, ...]:
        """The versions, the preferred one first."""
        names = (self.preferred_version, *(self.versions or ()))
        return tuple(dict.fromkeys(entry.version for entry in names if entry.version))


class ApiGroupList(Wire, frozen=True, kw_only=True):
    groups: tuple[ApiGroup, ...] | None = None
    """None if the answer has none."""


class ApiResource(Wire, frozen=True, kw_only=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class ApiResourceList(Wire, frozen=True, kw_only=True):
    resources: tuple[ApiResource, ...] | None = None
    """None if the answer has none."""


class ServerVersion(Wire, frozen=True, kw_only=True):
    major: str = ""
    minor: str = ""
