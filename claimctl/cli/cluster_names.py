"""Names from the cluster that a shell completes: claims, pods, workloads, namespaces, contexts.

A completion never fails and never takes long: without an answer there is no name to offer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import typer

from claimctl.cli.access import Access
from claimctl.cli.objects import CLAIM, POD, RESERVATION, RESERVED_FOR, kind_of
from claimctl.cli.session import Session, in_session
from claimctl.login.kubeconfig import names
from claimctl.wire import resources as wire
from claimctl.wire.meta import ObjectHeader

Completion = Callable[[typer.Context, str], list[str]]
SECONDS = 2.0
"""How long a request of a completion may take."""


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    return _filter(incomplete, _read(ctx, wire.NAMESPACES))


def _objects(ctx: typer.Context, incomplete: str, kinds: tuple[str, ...]) -> list[str]:
    """The names of the kind before the slash; without a slash, claims and the other kinds."""
    word, slash, name = incomplete.rpartition("/")
    if slash:
        kind = kind_of(word)
        there = _read(ctx, _RESOURCES[kind]) if kind in kinds else ()
        return [f"{word}/{name}" for name in _filter(name, there)]
    more = (f"{kind.lower()}/" for kind in kinds[1:])
    return _filter(incomplete, (*_read(ctx, _RESOURCES[kinds[0]]), *more))


_KNOWN: tuple[wire.Resource[Any], ...] = (wire.RESOURCECLAIMS, wire.PODS, wire.CLAIMRESERVATIONS)
_RESOURCES = {resource.kind: resource for resource in (*_KNOWN, *wire.WORKLOADS.values())}


_TYPEABLE = re.compile(r"[\w./:@%+=,-]+", re.ASCII)


def _filter(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that begin so. A shell would not take others as one word; zsh evaluates them."""
    known = filter(_TYPEABLE.fullmatch, names)
    return [name for name in known if name.startswith(incomplete)]


def _access(ctx: typer.Context) -> Access:
    """The connection flags so far on the line."""
    given = {field.name: ctx.params.get(field.name) for field in fields(Access)}
    known = {name: value for name, value in given.items() if value}
    return replace(Access(**known), request_timeout=SECONDS)


def _read(ctx: typer.Context, resource: wire.Resource[Any]) -> list[str]:
    """The names of the objects; none if the cluster does not tell them in time."""

    async def work(session: Session) -> list[str]:
        place = ctx.params.get("namespace") or session.namespace
        where = place if resource.namespaced else ""
        headers: wire.Resource[Any] = replace(resource, type=ObjectHeader)
        listing = await session.client.list(headers, where, partial=True)
        return sorted(obj.metadata.name for obj in listing.items)

    try:
        return in_session(_access(ctx), work)
    except Exception:
        return []


def _of_kubeconfig(ctx: typer.Context, incomplete: str, section: str) -> list[str]:
    """Complete the names of a section of the kubeconfig."""
    try:
        return _filter(incomplete, names(_access(ctx).kubeconfig, section))
    except Exception:
        return []


_CLAIMS = partial(_objects, kinds=(CLAIM,))
_EXPLAINABLE = partial(_objects, kinds=(CLAIM, POD, *RESERVED_FOR, RESERVATION))
COMPLETIONS: dict[str, Completion] = {
    "CLAIM": _CLAIMS,
    "[CLAIM]...": _CLAIMS,
    "OBJECT": _EXPLAINABLE,
    "[OBJECT]...": _EXPLAINABLE,
    "namespace": namespaces,
    "namespaces": namespaces,
    "context": partial(_of_kubeconfig, section="contexts"),
    "cluster": partial(_of_kubeconfig, section="clusters"),
    "user": partial(_of_kubeconfig, section="users"),
}
"""The completions by the metavar or the name of a parameter."""
