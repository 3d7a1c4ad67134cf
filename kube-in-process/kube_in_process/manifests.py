"""Files of objects: apply them as ``kubectl apply --server-side`` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kube_in_process.http.handler import Handler
from kube_in_process.objects import Object

MANAGER = "kube-in-process"
_SUFFIXES = (".yaml", ".yml", ".json")
_APPLY = "application/apply-patch+yaml"


class NotApplied(Exception):
    """An object was refused. The text names the object, and says why."""


def read_objects(source: Path | str) -> list[Object]:
    """The objects of a file, of the files in a folder, or of a text.

    A text has more than one line; anything else is a path. A List stands for its items.

    Raises:
        OSError: the file cannot be read.
        ValueError: a document is no object with ``apiVersion`` and ``kind``.
    """
    if isinstance(source, str) and "\n" in source:
        return list(_parsed(source, "the text"))
    path = Path(source)
    files = [path] if not path.is_dir() else sorted(path.iterdir())
    return [
        obj
        for file in files
        if file == path or file.suffix in _SUFFIXES
        for obj in _parsed(file.read_text(encoding="utf-8"), str(file))
    ]


def definitions_in(folder: Path) -> list[Object]:
    """The CustomResourceDefinitions in the files of a folder; what else is there does not count.

    Raises:
        OSError, ValueError: as ``read_objects``; or there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder")
    objects = read_objects(folder)
    return [obj for obj in objects if obj.get("kind") == "CustomResourceDefinition"]


def _parsed(text: str, where: str) -> Iterator[Object]:
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is no YAML: {' '.join(str(error).split())}") from error
    for document in documents:
        if not isinstance(document, dict) or not document.get("apiVersion"):
            raise ValueError(f"{where} has a document without apiVersion and kind")
        if document.get("kind") == "List":
            yield from document.get("items") or ()
        else:
            yield document


async def apply(handler: Handler, objects: list[Object]) -> list[Object]:
    """Apply objects in their order as the administrator; return them as they are then.

    An object without a name, but with ``generateName``, is created. One without a namespace comes
    into ``default``.

    Raises:
        NotApplied: an object was refused. Those before it stay.
    """
    return [await _applied(handler, obj) for obj in objects]


async def _applied(handler: Handler, obj: Object) -> Object:
    meta = obj.get("metadata") or {}
    path, name = _path(handler, obj), meta.get("name", "")
    query: list[tuple[str, str]] = [("fieldManager", MANAGER)]
    headers = {"content-type": "application/json"}
    if name:
        method, path = "PATCH", f"{path}/{name}"
        query.append(("force", "true"))
        headers["content-type"] = _APPLY
    else:
        method = "POST"
    body = json.dumps(obj, default=_written).encode()
    response = await handler.send(method, path, query, headers, body)
    answer: Object = json.loads(b"".join([part async for part in response.body]))
    if response.status >= 400:
        raise NotApplied(
            f"{obj['kind']} {name or meta.get('generateName', '')}: {answer['message']}"
        )
    return answer


def _written(value: Any) -> str:
    """A date, which YAML reads from plain text, as text again."""
    return str(value.isoformat())


def _path(handler: Handler, obj: Object) -> str:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    kind = handler.api.kinds.by_kind(group, str(obj.get("kind", "")))
    if kind is None or version not in kind.versions:
        raise NotApplied(f'no kind "{obj.get("kind")}" is served in version "{obj["apiVersion"]}"')
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    namespace = (obj.get("metadata") or {}).get("namespace") or "default"
    return (
        f"{base}/namespaces/{namespace}/{kind.plural}"
        if kind.namespaced
        else f"{base}/{kind.plural}"
    )
