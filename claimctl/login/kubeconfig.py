"""Read kubeconfig files, select a context, and report errors with file and field.

The official client does not read the files, because it behaves differently from kubectl: it fails
on an empty file, skips an unreadable file, uses the current-context of the last file (kubectl: the
first), and resolves a user's file names relative to the cluster's kubeconfig.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from claimctl.kube.errors import ConfigError

_FILES = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
_SINGULAR = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One named cluster, user or context; ``where`` names file and field, for messages."""

    where: str
    value: Mapping[str, Any] = field(default_factory=dict, repr=False)
    directory: Path = Path()

    def text(self, key: str) -> str:
        """A string field; empty if absent. Raises ConfigError if the field is not a string."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.where}: {key} must be a string, not {_shape(value)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.value.get(key, False)
        if not isinstance(value, bool):
            raise ConfigError(f"{self.where}: {key} must be true or false, not {_shape(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Selection:
    """The cluster and the user of one context. Without a user, ``user`` is an empty entry."""

    context: str
    namespace: str
    cluster: Entry
    user: Entry
    source: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """kubectl's flags that replace a part of what a kubeconfig says; '' and () keep it."""

    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    as_groups: tuple[str, ...] | None = None
    as_uid: str = ""

    def apply_to(self, chosen: Selection) -> Selection:
        """The selection with the flags' values."""
        return replace(
            chosen, cluster=self._on_cluster(chosen.cluster), user=self._on_user(chosen.user)
        )

    def _on_cluster(self, entry: Entry) -> Entry:
        value = dict(entry.value)
        if self.certificate_authority or self.insecure_skip_tls_verify:
            for key in (*_AUTHORITY, "insecure-skip-tls-verify"):
                value.pop(key, None)
        flags = {
            "server": self.server,
            "certificate-authority": self.certificate_authority,
            "insecure-skip-tls-verify": self.insecure_skip_tls_verify,
            "tls-server-name": self.tls_server_name,
        }
        value |= {key: flag for key, flag in flags.items() if flag}
        return replace(entry, value=value, where="--server" if self.server else entry.where)

    def _on_user(self, entry: Entry) -> Entry:
        if not self.token:
            return entry
        others = ("exec", "auth-provider", "username", "password", "tokenFile")
        kept = {key: value for key, value in entry.value.items() if key not in others}
        return replace(entry, value={**kept, "token": self.token}, where="--token")


_AUTHORITY = ("certificate-authority", "certificate-authority-data")


@dataclass(slots=True)
class _Merged:
    """Several files merged into one. The first file that has an entry wins."""

    paths: list[Path] = field(default_factory=list)
    current: str = ""
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {k: {} for k in _FILES})

    @property
    def source(self) -> str:
        return "kubeconfig " + os.pathsep.join(str(path) for path in self.paths)


def locate(kubeconfig: str | None, environ: Mapping[str, str]) -> list[Path]:
    """The kubeconfig files to read; empty if there are none, as in a pod.

    If KUBECONFIG names several files, missing ones are left out, as kubectl does.

    Raises:
        ConfigError: none of the files in KUBECONFIG exists.
    """
    if kubeconfig:
        return [Path(kubeconfig).expanduser()]
    parts = environ.get("KUBECONFIG", "").split(os.pathsep)
    listed = [Path(part).expanduser() for part in parts if part]
    if not listed:
        default = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
        return [default] if default.exists() else []
    present = [path for path in listed if path.exists()]
    if not present:
        names = ", ".join(str(path) for path in listed)
        raise ConfigError(f"KUBECONFIG names {names}: no such file; correct or unset it")
    return present


def select(
    paths: Sequence[Path], context: str | None, overrides: Overrides | None = None
) -> Selection:
    """Read ``paths`` and look up a context, by default the current one.

    A cluster and a user that ``overrides`` name replace those of the context.

    Raises:
        ConfigError: a file cannot be read, or the context, its cluster or its user is missing.
    """
    merged = _Merged(list(paths))
    for path in paths:
        _merge(merged, path)
    flags = overrides or Overrides()
    name = context or merged.current
    if not name and not (flags.cluster or flags.server or merged.entries["contexts"]):
        raise ConfigError(
            f"{merged.source}: no contexts in it; choose another one with --kubeconfig or "
            "KUBECONFIG"
        )
    if not name and not (flags.cluster or flags.server):
        raise ConfigError(
            f"{merged.source}: no current-context is set; choose one with --context"
            f"{_choices(merged.entries['contexts'])}"
        )
    nothing = Entry(f"{merged.source}: context {name!r} without a user")
    chosen = _lookup(merged, "contexts", name, "") if name else nothing
    by = f"context {name!r} names the "
    cluster = flags.cluster or chosen.text("cluster")
    user = flags.user or chosen.text("user")
    selection = Selection(
        context=name,
        namespace=chosen.text("namespace") or "default",
        cluster=_lookup(merged, "clusters", cluster, "--cluster: " if flags.cluster else by)
        if cluster or not flags.server
        else nothing,
        user=_lookup(merged, "users", user, "--user: " if flags.user else by) if user else nothing,
        source=merged.source,
    )
    return flags.apply_to(selection)


def names(kubeconfig: str | None, section: str) -> list[str]:
    """The names in a section (clusters, users or contexts) of the kubeconfig files. ConfigError if
    a file cannot be read."""
    merged = _Merged()
    for path in locate(kubeconfig, os.environ):
        _merge(merged, path)
    return list(merged.entries[section])


def _merge(merged: _Merged, path: Path) -> None:
    document = _read(path)
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise ConfigError(f"kubeconfig {path}: current-context must be a string")
    merged.current = merged.current or current
    for section in _FILES:
        for name, entry in _entries(path, section, document.get(section)):
            merged.entries[section].setdefault(name, entry)


def _read(path: Path) -> Mapping[str, Any]:
    where = f"kubeconfig {path}"
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{where}: {error.strerror}; choose another one with --kubeconfig or KUBECONFIG"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not a text file") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not YAML: {_yaml_problem(error)}") from error
    if document is None:
        raise ConfigError(f"{where}: the file is empty; write one with your cluster's own tool")
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: expected clusters, users and contexts, not {_shape(document)}")
    return document


def _entries(path: Path, section: str, items: Any) -> Iterator[tuple[str, Entry]]:
    if items is None:
        return
    if not isinstance(items, list):
        raise ConfigError(f"kubeconfig {path}: {section} must be a list, not {_shape(items)}")
    singular = _SINGULAR[section]
    for number, item in enumerate(items):
        where = f"kubeconfig {path}: {section}[{number}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ConfigError(f"{where}: 'name' is missing")
        value = item.get(singular) or {}
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: {singular} must be a mapping, not {_shape(value)}")
        entry = Entry(
            f"kubeconfig {path}: {singular} {item['name']!r}",
            _absolute(value, _FILES[section], path.absolute().parent),
            path.absolute().parent,
        )
        yield item["name"], entry


def _absolute(value: dict[str, Any], keys: Sequence[str], directory: Path) -> dict[str, Any]:
    """Resolve file names relative to the kubeconfig that contains them."""
    files = {key: str(directory / value[key]) for key in keys if isinstance(value.get(key), str)}
    return {**value, **{key: file for key, file in files.items() if value[key]}}


def _lookup(merged: _Merged, section: str, name: str, by: str) -> Entry:
    entries = merged.entries[section]
    if name not in entries:
        singular = _SINGULAR[section]
        which = ", which" if by else ""
        what = f"{by}{singular} {name!r}{which} does not exist"
        raise ConfigError(f"{merged.source}: {what}{_choices(entries)}")
    return entries[name]


def _choices(entries: Mapping[str, Entry]) -> str:
    return f"; there are: {', '.join(entries)}" if entries else "; there are none"


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


def _shape(value: object) -> str:
    names = {list: "a list", dict: "a mapping", str: "text", bool: "true or false"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "a date")
