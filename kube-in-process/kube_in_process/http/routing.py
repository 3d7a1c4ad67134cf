"""Parse the path of a resource request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_NAMESPACES = ("status", "finalize")


class Route(msgspec.Struct, frozen=True):
    """A resource request. ``watch`` is set by the query or by an old /watch/ path."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    deeper: bool = False

    def verb(self, method: str) -> str:
        """The authorization verb of a request."""
        verb = _VERBS.get(method, method.lower())
        if verb == "get" and not self.name:
            return "watch" if self.watch else "list"
        if verb == "delete" and not self.name:
            return "deletecollection"
        return "watch" if verb == "get" and self.watch else verb


def true(text: str | None) -> bool:
    """A boolean query parameter by Kubernetes' rule."""
    return text is not None and text.lower() not in ("false", "0")


def route(path: str, query: Mapping[str, str]) -> Route | None:
    """The resource request of a path; None if the path names no resource."""
    parts = path.removeprefix("/").removesuffix("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not version:
        return None
    old_watch = rest[0] == "watch"
    rest = rest[1:] if old_watch else rest
    if not rest:
        return None
    namespace, rest = _namespaced(rest)
    if not all(rest):
        return None
    plural, name, subresource, *deeper = [*rest, "", "", ""][: max(len(rest), 3)]
    asked = true(query.get("watch")) and not name
    return Route(
        group,
        version,
        plural,
        namespace,
        name,
        subresource,
        watch=old_watch or asked,
        deeper=bool(deeper),
    )


def _namespaced(rest: list[str]) -> tuple[str, list[str]]:
    if rest[:2] == ["namespaces", ""]:
        # no name: all namespaces
        return "", rest[2:] or [""]
    if rest[0] != "namespaces" or len(rest) < 3 or rest[2] in _OF_NAMESPACES:
        return "", rest
    return rest[1], rest[2:]
