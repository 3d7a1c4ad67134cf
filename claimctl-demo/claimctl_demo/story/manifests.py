"""Reads the user's manifests from files, and reports each problem in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from claimctl.wire.base import Object

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object with its place: ``document`` counts from 1, ``item`` within a List."""

    file: str
    document: int
    body: Object
    item: int = 0

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def name(self) -> str:
        metadata = self.body["metadata"]
        return str(metadata.get("name") or metadata["generateName"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace") or "default")

    @property
    def where(self) -> str:
        return f"{place(self.file, self.document, self.item)} ({self.kind} {self.name})"


class BadManifest(Exception):
    """One problem of a file; the text names the place."""


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: dates are strings, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(files: Sequence[str]) -> tuple[list[Manifest], list[str]]:
    """The objects of all files in order, and one line per problem."""
    manifests: list[Manifest] = []
    problems: list[str] = []
    for file in files:
        try:
            found = _read(file)
        except BadManifest as problem:
            problems.append(str(problem))
            continue
        for each in found:
            if isinstance(each, Manifest):
                manifests.append(each)
            else:
                problems.append(str(each))
    return manifests, problems


def _read(file: str) -> list[Manifest | BadManifest]:
    shown = "standard input" if file == STDIN else file
    found = list(_objects(shown, _documents(shown, _text(file, shown))))
    if not found:
        raise BadManifest(f"{shown}: no object in it")
    return found


def _text(file: str, shown: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except IsADirectoryError:
        raise BadManifest(f"{shown}: a directory, not a file") from None
    except UnicodeDecodeError as error:
        raise BadManifest(f"{shown}: not text (byte {error.start} is not UTF-8)") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadManifest(f"{shown}: {reason}") from None


def _documents(shown: str, text: str) -> Iterator[tuple[int, Any]]:
    """The documents with their numbers; empty documents are skipped and not counted."""
    number = 1
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            if document is not None:
                yield number, _plain(document)
                number += 1
    except yaml.YAMLError as error:
        raise BadManifest(f"{place(shown, number)}: not YAML: {_reason(error)}") from None
    except RecursionError:
        raise BadManifest(f"{place(shown, number)}: nested too deeply") from None
    except ValueError as error:
        raise BadManifest(f"{place(shown, number)}: {error}") from None


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)


def _plain(value: Any) -> Any:
    """The value as in JSON: every key is a string."""
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"{type(value).__name__} has no place in a manifest")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, str | int | float):
        return str(key)
    raise ValueError("a key that is no scalar has no place in a manifest")


def _objects(shown: str, documents: Iterator[tuple[int, Any]]) -> Iterator[Manifest | BadManifest]:
    for number, document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
            for item, body in enumerate(items, start=1):
                yield _checked(shown, number, body, item)
        else:
            yield _checked(shown, number, document)


def _checked(shown: str, number: int, body: Any, item: int = 0) -> Manifest | BadManifest:
    where = place(shown, number, item)
    if not isinstance(body, dict):
        return BadManifest(f"{where}: not an object but {type(body).__name__}")
    for field in ("apiVersion", "kind"):
        if not isinstance(body.get(field), str) or not body[field]:
            return BadManifest(f"{where}: {field}: Required value")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        return BadManifest(f"{where} ({body['kind']}): metadata.name: Required value")
    return Manifest(shown, number, body, item)


def place(file: str, document: int, item: int = 0) -> str:
    return f"{file}, document {document}" + (f", item {item}" if item else "")
