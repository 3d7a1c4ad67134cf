"""CustomResourceDefinitions: kinds that come and go while the server runs.

A definition is served as soon as it is stored. Its conditions are written right after the create,
whose answer has none yet. Its deletion deletes the objects first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any

from kube_in_process.crd.objects import CustomStrategy
from kube_in_process.crd.validation import validate_definition
from kube_in_process.errors import FieldError, bad_request
from kube_in_process.kinds.kind import Kind
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.requests import MASTERS, Actor
from kube_in_process.storage.store import Address, Author, Revision
from kube_in_process.text.times import timestamp
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.reading import Target

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SERVER = Actor("system:apiserver", (MASTERS,), "kube-apiserver")
_AUTHOR = Author(_SERVER.user, "update", "status")
_IN_PROGRESS = "InstanceDeletionInProgress"
_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")


class Definitions:
    """Updates kinds, strategies and schemas when a stored definition changes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._served: dict[str, Kind] = {}
        self.columns: dict[tuple[str, str, str], list[Object]] = {}
        """additionalPrinterColumns by (group, version, plural)."""
        api.strategies.register(GROUP, PLURAL, DefinitionStrategy(self))
        api.store.subscribe(self._definition_changed, GROUP, PLURAL)
        for obj in api.store.list(GROUP, PLURAL):
            self._serve(obj)

    def _definition_changed(self, revision: Revision) -> None:
        if revision.type == "DELETED":
            self._forget(revision.name)
            return
        obj = revision.object()
        self._serve(obj)
        if obj["metadata"].get("deletionTimestamp"):
            _soon(lambda: self._clean_up(revision.name))

    def _serve(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        self._forget(name)
        kind = custom_kind(obj)
        versions = {version["name"]: version for version in obj["spec"]["versions"]}
        for version in kind.versions:
            entry = versions[version]
            raw = entry["schema"]["openAPIV3Schema"]
            self._api.schemas.add_custom(kind.group, version, kind.kind, raw)
            columns = entry.get("additionalPrinterColumns")
            if columns:
                self.columns[kind.group, version, kind.plural] = columns
        strategy = CustomStrategy(obj, versions[kind.version])
        self._api.strategies.register(kind.group, kind.plural, strategy)
        self._api.kinds.add(kind)
        self._served[name] = kind

    def _forget(self, name: str) -> None:
        kind = self._served.pop(name, None)
        if kind is None:
            return
        self._api.kinds.remove(kind)
        self._api.strategies.remove(kind.group, kind.plural)
        for version in kind.versions:
            self._api.schemas.remove_custom(kind.group, version, kind.kind)
            self.columns.pop((kind.group, version, kind.plural), None)

    def schema_problem(self, raw: Object) -> str:
        """The decoder's error text for the schemas below ``raw``; '' if there is none.

        With ``raw``, the decoder has read those of its properties, and of their properties.
        """
        decoder = self._api.decoder
        for below, is_read in _inner(raw):
            if not isinstance(below, dict):
                return "boolean or JSON schema expected"
            problem = ""
            if not is_read:
                problem = decoder.model_problem("V1JSONSchemaProps", "JSONSchemaProps", below)
            problem = problem or self.schema_problem(below)
            if problem:
                return problem
        return ""

    def establish(self, obj: Object) -> None:
        """Write the conditions of a definition that was just created."""
        moment = timestamp(self._api.clock.now())
        names = obj["spec"]["names"]
        status = {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found", moment),
                _condition(
                    "Established",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                    moment,
                ),
            ],
            "acceptedNames": dict(names),
            "storedVersions": obj["status"]["storedVersions"],
        }
        self._put({**obj, "metadata": dict(obj["metadata"]), "status": status})

    def begin_deletion(self, obj: Object) -> None:
        """Add the finalizer and the condition to a definition that is being deleted."""
        meta = obj["metadata"]
        meta["finalizers"] = [*(meta.get("finalizers") or []), FINALIZER]
        obj["status"]["conditions"] = [
            *(obj["status"].get("conditions") or []),
            _condition(
                "Terminating",
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin "
                "soon",
                timestamp(self._api.clock.now()),
            ),
        ]

    def _clean_up(self, name: str) -> None:
        """Delete the objects of a deleted definition, then remove its finalizer."""
        obj = self._api.store.get(Address(GROUP, PLURAL, "", name))
        kind = self._served.get(name)
        if obj is None or kind is None or FINALIZER not in obj["metadata"].get("finalizers", ()):
            return
        for condition in obj["status"]["conditions"] or ():
            if condition["type"] == "Terminating" and condition["reason"] != _IN_PROGRESS:
                condition["reason"] = _IN_PROGRESS
                condition["message"] = "CustomResource deletion is in progress"
                # the change leads here again
                self._put(obj)
                return
        left = self._delete_objects(kind)
        if left:
            self._once_gone(kind, name)
            return
        finalizers = [one for one in obj["metadata"]["finalizers"] if one != FINALIZER]
        obj["metadata"]["finalizers"] = finalizers
        if finalizers:
            self._put(obj)
        else:
            del obj["metadata"]["finalizers"]
            self._api.store.delete(Address(GROUP, PLURAL, "", name), _AUTHOR, obj)

    def _delete_objects(self, kind: Kind) -> bool:
        """Delete the objects; return whether finalizers keep some of them."""
        for item in self._api.store.list(kind.group, kind.plural):
            meta = item["metadata"]
            if not meta.get("deletionTimestamp"):
                namespace = meta.get("namespace", "")
                self._api.delete(_SERVER, Target(kind, namespace, meta["name"]))
        return bool(self._api.store.items(kind.group, kind.plural))

    def _once_gone(self, kind: Kind, name: str) -> None:
        def notice(revision: Revision) -> None:
            if revision.type == "DELETED" and not self._api.store.items(kind.group, kind.plural):
                stop()
                _soon(lambda: self._clean_up(name))

        stop = self._api.store.subscribe(notice, kind.group, kind.plural)

    def _put(self, obj: Object) -> None:
        address = Address(GROUP, PLURAL, "", obj["metadata"]["name"])
        self._api.store.put(address, obj, _AUTHOR)


def _inner(raw: Object) -> Iterator[tuple[Any, bool]]:
    """The schemas of the properties, which the decoder reads with ``raw``, and of the items and
    the additional properties, which it does not."""
    for below in (raw.get("properties") or {}).values():
        yield below, True
    for key in ("items", "additionalProperties"):
        if not isinstance(raw.get(key), (bool, NoneType)):
            yield raw[key], False


def _soon(action: Callable[[], None]) -> None:
    """Call ``action`` after the current write, when all subscribers have seen that."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        action()
    else:
        loop.call_soon(action)


def _condition(kind: str, reason: str, message: str, moment: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


class DefinitionStrategy(Strategy):
    deletion_raises_generation = False

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
        spec.setdefault("conversion", {"strategy": "None"})

    def decoded(self, obj: Object) -> None:
        """Refuse schemas of wrong types where the decoder of the whole does not look: in those of
        items and of additional properties."""
        for version in (obj.get("spec") or {}).get("versions") or ():
            raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            problem = self._definitions.schema_problem(raw)
            if problem:
                kind = "CustomResourceDefinition"
                raise bad_request(
                    f'{kind} in version "v1" cannot be handled as a {kind}: {problem}'
                )

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        stored = [v.get("name", "") for v in obj["spec"].get("versions") or () if v.get("storage")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored,
        }

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return list(validate_definition(obj))

    def created(self, obj: Object, context: WriteContext) -> None:
        self._definitions.establish(obj)

    def pending(self, obj: Object) -> bool:
        """A definition is always marked first, because its objects must be deleted before it."""
        meta = obj["metadata"]
        return bool(meta.get("finalizers")) or not meta.get("deletionTimestamp")

    def mark_deleting(self, obj: Object, grace: int) -> None:
        self._definitions.begin_deletion(obj)


def custom_kind(obj: Object) -> Kind:
    """The kind of a definition, with the preferred version first."""
    spec = obj["spec"]
    names = spec["names"]
    served = [version for version in spec["versions"] if version.get("served")] or spec["versions"]
    ordered = sorted((version["name"] for version in served), key=_priority)
    subresources = {name for v in served for name in v.get("subresources") or {}}
    return Kind(
        group=spec["group"],
        versions=tuple(ordered),
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if name in subresources),
        generation=True,
        unconditional_update=False,
        custom=True,
        terminating=bool(obj["metadata"].get("deletionTimestamp")),
        list_kind=names.get("listKind", ""),
    )


def _priority(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, and then by name."""
    match = _VERSION.match(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    rank = {None: 0, "beta": 1, "alpha": 2}[stage]
    return (rank, -int(major), -int(minor or 0), "")
