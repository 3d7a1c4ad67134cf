"""Discovery documents: the served groups, versions and resources, plain and aggregated."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kube_in_process.errors import StatusError, unknown_resource
from kube_in_process.kinds.kind import Kind, Kinds
from kube_in_process.text.data import table

JSON = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

_WRITES = ("create", "patch", "update")
_READ_WRITE = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class DiscoveryAnswer:
    content_type: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subresource:
    """The kind and verbs of a subresource; an empty ``kind`` is that of its resource."""

    kind: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = _READ_WRITE


_SUBRESOURCES = table(__package__, "subresources.json", dict[str, Subresource])
"""By ``resource/subresource``, or by the subresource for all resources."""
_PLAIN = Subresource()
_CUSTOM_VERBS = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)


def subresource(kind: Kind, name: str) -> Subresource:
    return _SUBRESOURCES.get(f"{kind.plural}/{name}", _SUBRESOURCES.get(name, _PLAIN))


class Discovery:
    """Built from the kinds at every request, because definitions come and go."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def get(self, path: str, accept: str) -> DiscoveryAnswer | None:
        """The document of a discovery path, or None for any other path.

        Raises:
            StatusError: 406 where the client takes neither form; 404 for an unknown version of
                a group that is served.
        """
        parts = path.strip("/").split("/")
        try:
            return self._document(parts, accept)
        except StatusError as error:
            # The router refuses media types that it does not know; paths of groups go past it.
            group = len(parts) == 2 and parts[0] == "apis"
            media = {entry.partition(";")[0].strip() for entry in accept.split(",")}
            if error.code != 406 or group or media & {*_MEDIA_TYPES.split(", "), "*/*"}:
                raise
            text = f"406: Not Acceptable\n\nAvailable representations: {_MEDIA_TYPES}"
            raise StatusError(406, "NotAcceptable", text, {}) from None

    def _document(self, parts: list[str], accept: str) -> DiscoveryAnswer | None:
        if parts[0] not in ("api", "apis") or len(parts) > (2 if parts[0] == "api" else 3):
            return None
        if len(parts) == 1:
            return self._root(parts[0], accept)
        if parts[0] == "api":
            return self._resources("", parts[1], accept)
        if parts[1] not in self._groups():
            return None
        if len(parts) == 2:
            return _plain(accept, {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])})
        custom = all(kind.custom for kind in self._kinds if kind.group == parts[1])
        if custom and parts[2] not in self._kinds.versions(parts[1]):
            return None
        return self._resources(parts[1], parts[2], accept)

    def paths(self) -> list[str]:
        """Every discovery path, without the slash at its beginning."""
        roots = ["api", *(f"api/{version}" for version in self._kinds.versions("")), "apis"]
        for group in self._groups():
            roots.append(f"apis/{group}")
            roots += [f"apis/{group}/{version}" for version in self._kinds.versions(group)]
        return roots

    def _groups(self) -> list[str]:
        return [group for group in self._kinds.groups() if group]

    def _root(self, root: str, accept: str) -> DiscoveryAnswer:
        form = _form(accept)
        if form == AGGREGATED:
            names = [""] if root == "api" else self._groups()
            body = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": "apidiscovery.k8s.io/v2",
                "metadata": {},
                "items": [self._aggregated(group) for group in names],
            }
            return DiscoveryAnswer(AGGREGATED, body)
        if root == "api":
            return DiscoveryAnswer(form, self._core_versions())
        groups = [self._group(group) for group in self._groups()]
        return DiscoveryAnswer(form, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _core_versions(self) -> dict[str, Any]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
        return {
            "kind": "APIVersions",
            "versions": list(self._kinds.versions("")),
            "serverAddressByClientCIDRs": [address],
        }

    def _group(self, name: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version}
            for version in self._kinds.versions(name)
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str, accept: str) -> DiscoveryAnswer:
        if version not in self._kinds.versions(group):
            raise unknown_resource()
        body: dict[str, Any] = {"kind": "APIResourceList"}
        if group:
            body["apiVersion"] = "v1"
        body["groupVersion"] = f"{group}/{version}" if group else version
        body["resources"] = [
            entry
            for kind in _sorted(self._kinds, group, version)
            for entry in (_resource(kind), *(_plain_subresources(kind)))
        ]
        return _plain(accept, body)

    def _aggregated(self, group: str) -> dict[str, Any]:
        versions = [
            {
                "version": version,
                "resources": [
                    _aggregated_resource(kind) for kind in _sorted(self._kinds, group, version)
                ],
                "freshness": "Current",
            }
            for version in self._kinds.versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _sorted(kinds: Kinds, group: str, version: str) -> list[Kind]:
    served = (kind for kind in kinds if kind.group == group and version in kind.versions)
    return sorted(served, key=lambda kind: kind.plural)


def _verbs(kind: Kind) -> list[str]:
    verbs = _CUSTOM_VERBS if kind.custom else kind.verbs
    return [verb for verb in verbs if not (kind.terminating and verb in _WRITES)]


def _names(kind: Kind) -> dict[str, Any]:
    names: dict[str, Any] = {}
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _resource(kind: Kind) -> dict[str, Any]:
    entry = {
        "name": kind.plural,
        "singularName": kind.singular_name,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
        **_names(kind),
    }
    if "update" in kind.verbs:
        entry["storageVersionHash"] = storage_version_hash(kind)
    return entry


def storage_version_hash(kind: Kind) -> str:
    """The hash that tells clients when a kind is stored in another version."""
    stored = f"{kind.storage[0]}/{kind.hashed_as or kind.versions[0]}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _plain_subresources(kind: Kind) -> Iterable[dict[str, Any]]:
    for name in kind.subresources:
        sub = subresource(kind, name)
        entry: dict[str, Any] = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
        }
        if sub.group:
            entry |= {"group": sub.group, "version": sub.version}
        yield {**entry, "kind": sub.kind or kind.kind, "verbs": list(sub.verbs)}


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    entry = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular_name,
        "verbs": _verbs(kind),
        **_names(kind),
    }
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, name) for name in kind.subresources]
    return entry


def _aggregated_subresource(kind: Kind, name: str) -> dict[str, Any]:
    sub = subresource(kind, name)
    response = {"group": sub.group, "version": sub.version, "kind": sub.kind or kind.kind}
    return {"subresource": name, "responseKind": response, "verbs": list(sub.verbs)}


def _plain(accept: str, body: dict[str, Any]) -> DiscoveryAnswer:
    """Paths below the roots have no aggregated form; Accept must allow another one."""
    rest = ",".join(entry for entry in accept.split(",") if "as=" not in entry)
    if accept and not rest:
        raise not_acceptable()
    return DiscoveryAnswer(_form(rest), body)


def _form(accept: str) -> str:
    """The content type of the answer: the first supported one in Accept."""
    for entry in (accept or "*/*").split(","):
        parts = [part.strip() for part in entry.split(";")]
        if ";".join(parts) == AGGREGATED:
            return AGGREGATED
        if parts[0] in (JSON, "*/*", "application/*") and not any("=v" in p for p in parts[1:]):
            return JSON
    raise not_acceptable()


def not_acceptable() -> StatusError:
    """406: no content type in Accept is supported."""
    message = f"only the following media types are accepted: {_MEDIA_TYPES}"
    return StatusError(406, "NotAcceptable", message)
