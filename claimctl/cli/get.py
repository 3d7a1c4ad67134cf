"""``claimctl get``: lists claims with their holders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.options import (
    AllNamespacesOption,
    AsOption,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    OutputOption,
    SelectorOption,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.inspect.claim_view import ClaimView
    from claimctl.kube.client import Client
    from claimctl.wire.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class Wanted:
    """The claims to show. Namespace "" means all namespaces; no names mean all claims."""

    namespace: str
    names: tuple[str, ...] = ()
    selector: str = ""


def command(  # noqa: PLR0913 - one parameter per flag
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CLAIM]...", help="Claims to show. [default: all]"),
    ] = None,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    output: OutputOption = Output.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
) -> int:
    """List claims with their state, devices, nodes, holders and retention."""
    from claimctl.cli.errors import UsageError
    from claimctl.cli.session import Access, in_session

    if names and (all_namespaces or selector):
        raise UsageError("names of claims cannot be given together with -A or -l")

    async def work(session: Session) -> int:
        place = "" if all_namespaces else namespace or session.namespace
        wanted = Wanted(place, tuple(names or ()), selector)
        return await run(session.client, session.clock.now(), wanted, output)

    return in_session(Access(kubeconfig, context, as_user), work)


async def run(client: Client, now: datetime, wanted: Wanted, output: Output) -> int:
    from claimctl.cli.output import render

    shown = await gather(client, wanted)
    render(output, table(shown, now, wanted), _document(shown, now))
    return 0


async def gather(client: Client, wanted: Wanted) -> list[ClaimView]:
    """The claims, read live.

    Raises:
        NotFound: a claim in ``wanted.names`` does not exist.
    """
    from claimctl.inspect.claim_view import views
    from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS

    if wanted.names:
        claims = [await client.get(RESOURCECLAIMS, name, wanted.namespace) for name in wanted.names]
    else:
        listing = await client.list(
            RESOURCECLAIMS, wanted.namespace, label_selector=wanted.selector, partial=True
        )
        claims = list(listing.items)
        _warn_unreadable(listing.unreadable)
    if not claims:
        return []
    pods = await client.list(PODS, wanted.namespace, partial=True)
    reserved = await client.list_if_served(CLAIMRESERVATIONS, wanted.namespace)
    _warn_unreadable((*pods.unreadable, *reserved.unreadable))
    return views(claims, pods.items, reserved.items)


def _warn_unreadable(found: Iterable[Unreadable]) -> None:
    """Warn on stderr of objects that cannot be read: the output may lack them."""
    for each in found:
        typer.echo(f"warning: {each.describe()}", err=True)


def table(shown: list[ClaimView], now: datetime, wanted: Wanted) -> Table:
    from claimctl.cli.output import Column, Table
    from claimctl.text import age

    columns = ("NAME", "STATE", "DEVICES", "NODE", "HOLDERS", "RETENTION", "AGE")
    head = tuple(Column(title) for title in columns)
    extra = (
        Column("PLACES", wide=True),
        Column("CONSUMERS", wide=True),
        Column("UID", wide=True),
    )
    rows: tuple[tuple[str, ...], ...] = tuple(
        (
            view.name,
            view.state,
            ",".join(view.devices),
            _nodes(view.nodes),
            view.holders,
            view.retention,
            age(view.claim.metadata.creation_timestamp, now),
            view.places,
            str(view.consumers.count),
            view.claim.metadata.uid,
        )
        for view in shown
    )
    if not wanted.namespace:
        head = (Column("NAMESPACE"), *head)
        rows = tuple((view.namespace, *row) for view, row in zip(shown, rows, strict=True))
    return Table(
        columns=(*head, *extra),
        rows=rows,
        names=tuple(f"resourceclaim.resource.k8s.io/{view.name}" for view in shown),
        empty=_none_found(wanted),
    )


def _nodes(nodes: tuple[str, ...]) -> str:
    return nodes[0] + (f"+{len(nodes) - 1}" if len(nodes) > 1 else "") if nodes else ""


def _none_found(wanted: Wanted) -> str:
    where = f" in namespace {wanted.namespace}" if wanted.namespace else ""
    return f"No claims found{where}."


def _document(shown: list[ClaimView], now: datetime) -> dict[str, object]:
    from claimctl.inspect.claim_view import document

    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ClaimList",
        "items": [document(view, now) for view in shown],
    }
