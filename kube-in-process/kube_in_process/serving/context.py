"""Add the embedded cluster's context to a kubeconfig, and remove it at the end.

All other clusters, users and contexts of the file stay, and so does every field that is not known
here. As kubectl does, a writer holds ``FILE.lock`` meanwhile.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kube_in_process.serving.kubeconfig import (
    NAME,
    Access,
    check_writable,
    kubeconfig,
    replace_file,
)

Document = dict[str, Any]

MARK = "kube-in-process"
"""The name of the extension that marks entries of an embedded cluster. Others are never changed."""
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_ELSEWHERE = "name another file, for example --kubeconfig ./embedded.kubeconfig"


class NotUsable(Exception):
    """The file is not one that may be written. The text is one line with what to do."""


def check(path: Path) -> None:
    """Check before the start that ``join`` can write the file.

    Raises:
        NotUsable: the file is no kubeconfig, has an entry of the same name by somebody else, or is
            in use by an embedded cluster that runs.
        OSError: the file cannot be read, or its directory cannot be written.
    """
    target = path.resolve()
    check_writable(target)
    _refuse_taken(path, _read(target))


def join(path: Path, access: Access) -> None:
    """Add the context, and make it the current one. A file that does not exist is created.

    Raises:
        NotUsable, OSError: as ``check``; or another program holds the lock.
    """
    target = path.resolve()
    with _locked(target):
        document = _read(target)
        _refuse_taken(path, document)
        before = _noted(document) or {
            "previousContext": document.get("current-context") or "",
            "createdFile": not target.exists(),
        }
        _remove(document)
        mark = {"name": MARK, "extension": before}
        own = yaml.safe_load(kubeconfig(access))
        for section, singular in _SECTIONS.items():
            entry = own[section][0]
            entry[singular]["extensions"] = [mark]
            document[section] = [*(document.get(section) or ()), entry]
        _write(target, {**_HEAD, **document, "current-context": NAME})


_HEAD = {"apiVersion": "v1", "kind": "Config"}


def leave(path: Path, access: Access) -> None:
    """Remove the context, and restore the current context. A file that ``join`` created and that
    has no other entry is deleted.

    Nothing happens if another embedded cluster has replaced the context meanwhile.

    Raises:
        NotUsable, OSError: as ``join``.
    """
    target = path.resolve()
    with _locked(target):
        document = _read(target)
        noted = _noted(document)
        if noted is None or _server(document) != access.url:
            return
        _remove(document)
        if document.get("current-context") == NAME:
            document["current-context"] = _if_there(document, noted.get("previousContext"))
        if noted.get("createdFile") and not any(document.get(section) for section in _SECTIONS):
            target.unlink()
        else:
            _write(target, document)


def _if_there(document: Document, context: Any) -> str:
    return context if context in {entry["name"] for entry in _entries(document, "contexts")} else ""


def _server(document: Document) -> str:
    servers = (entry for entry in _entries(document, "clusters") if entry["name"] == NAME)
    return next((str(entry["cluster"].get("server")) for entry in servers), "")


def _noted(document: Document) -> Document | None:
    """What ``join`` noted in its context; None without such a context."""
    for entry in _entries(document, "contexts"):
        if entry["name"] == NAME:
            return _mark(entry["context"])
    return None


def _mark(value: Document) -> Document | None:
    for extension in value.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == MARK:
            return extension.get("extension") or {}
    return None


def _remove(document: Document) -> None:
    for section in _SECTIONS:
        if document.get(section):
            document[section] = [one for one in document[section] if one["name"] != NAME]


def _refuse_taken(path: Path, document: Document) -> None:
    """Raise NotUsable if somebody else has written a cluster, user or context of our name, or if
    the cluster that wrote them still answers. What a killed one left may be replaced."""
    for section, singular in _SECTIONS.items():
        for entry in _entries(document, section):
            if entry["name"] == NAME and _mark(entry[singular]) is None:
                raise NotUsable(
                    f"{path} has a {singular} {NAME!r} that another program wrote; {_ELSEWHERE}"
                )
    if _listens(server := _server(document)):
        raise NotUsable(
            f"{path} has the context {NAME!r} of a cluster that runs at {server}; {_ELSEWHERE}"
        )


def _listens(url: str) -> bool:
    """Whether a server of this host listens there."""
    address = urlsplit(url)
    if not address.hostname or not address.port:
        return False
    try:
        socket.create_connection((address.hostname, address.port), timeout=1).close()
    except OSError:
        return False
    return True


def _entries(document: Document, section: str) -> list[Document]:
    return document.get(section) or []


def _read(path: Path) -> Document:
    """The kubeconfig as plain data; empty if the file is empty or does not exist."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _RoundTripLoader)
    except FileNotFoundError:
        return {}
    except (UnicodeDecodeError, yaml.YAMLError):
        raise _not_a_kubeconfig(path) from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not _may_be_a_kubeconfig(document):
        raise _not_a_kubeconfig(path)
    for section, singular in _SECTIONS.items():
        entries = document.get(section) or []
        if not isinstance(entries, list) or not all(
            _is_entry(entry, singular) for entry in entries
        ):
            raise _not_a_kubeconfig(path)
    return document


def _may_be_a_kubeconfig(document: Document) -> bool:
    return document.get("kind", "Config") == "Config" and not document.keys().isdisjoint(_KNOWN)


_KNOWN = {"kind", "current-context", *_SECTIONS}


def _is_entry(entry: Any, singular: str) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    entry[singular] = entry.get(singular) or {}
    return isinstance(entry[singular], dict)


def _not_a_kubeconfig(path: Path) -> NotUsable:
    return NotUsable(f"{path} exists and is not a kubeconfig: it stays as it is; {_ELSEWHERE}")


class _RoundTripLoader(yaml.SafeLoader):
    """Reads only what is written back unchanged: no dates, no octal or sexagesimal numbers."""


_RoundTripLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", "true|false", "tf"),
    ("null", "null|~|", ["n", "~", ""]),
    ("int", "0|-?[1-9][0-9]*", list("-0123456789")),
    ("merge", "<<", "<"),
):
    _RoundTripLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first)
    )


def _write(path: Path, document: Document) -> None:
    """Replace the file in one step. It keeps its mode; a new one is readable for its owner only."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    replace_file(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True), mode)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise NotUsable(
            f"{lock} exists: another program writes the kubeconfig; if none does, delete that file"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
