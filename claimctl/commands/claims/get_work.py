"""``claimctl get``: lists claims with their holders."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import compress

from claimctl.cli.errors import ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, kind_of, resource_name
from claimctl.cli.output import Column, Table, columns, print_document, print_table, render
from claimctl.cli.printer import print_lines, say
from claimctl.cli.session import Session
from claimctl.cli.watching import changes, clear
from claimctl.commands.claims.claim_list import end_of, list_of
from claimctl.commands.claims.claim_view import ClaimView, views
from claimctl.commands.claims.device_classes import (
    CLAIMS_WITH_REQUESTS,
    AskingClaim,
    everywhere,
    waiting_pods,
)
from claimctl.commands.claims.judgement import judged
from claimctl.commands.claims.missing import others_than
from claimctl.commands.claims.places import read_places
from claimctl.commands.claims.vain_requests import vain_requests
from claimctl.kube.client import Client
from claimctl.kube.errors import ApiError, NotFound
from claimctl.live_objects import list_if_served
from claimctl.parallel import side_by_side
from claimctl.text import age, listed
from claimctl.wire.resources import CLAIMRESERVATIONS, NAMESPACES, PODS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class ClaimsWanted:
    """The claims to show; no names mean all claims.

    Attributes:
        namespace: "" means all namespaces.
        sort_by: a column of the table; '' keeps the order of the server.
        head: whether to print the titles of the columns.
        idle: only claims whose devices a workload holds without a pod, with their times and the
            pods that wait for such devices.
    """

    namespace: str
    names: tuple[str, ...] = ()
    selector: str = ""
    sort_by: str = ""
    head: bool = True
    idle: bool = False


async def get(session: Session, wanted: ClaimsWanted, output: Output, *, watch: bool) -> int:
    """Print the claims of a namespace once, or again after every change; the exit code."""
    chosen = replace(wanted, namespace=session.namespace)
    if watch:
        await follow(session.client, session.clock, chosen, output)
    return await run(session.client, session.clock.now(), chosen, output)


async def run(client: Client, now: datetime, wanted: ClaimsWanted, output: Output) -> int:
    claims, missing = await _read(client, wanted)
    shown = in_order(await _judge(client, now, wanted, claims), wanted.sort_by)
    if shown or not missing:
        empty = "" if shown else await none_found(client, wanted.namespace, idle=wanted.idle)
        made = table(shown, now, wanted, empty)
        render(output, made, list_of(shown, now), head=wanted.head)
    others = await others_than(client, wanted.namespace) if missing and not shown else ""
    for name in missing:
        hint = "; `claimctl get` takes names of claims, and no kind" if kind_of(name) else others
        say(f"error: claim {wanted.namespace}/{name} not found{hint}")
    return ExitCode.FAILED if missing else ExitCode.OK


async def follow(client: Client, clock: Clock, wanted: ClaimsWanted, output: Output) -> None:
    """Print the claims, and again what has changed, for ever.

    A terminal shows the whole table anew. In a pipe only the rows of changed claims follow.
    """
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    async with changes(client, clock, wanted.namespace) as news:
        async for _ in news:
            shown = in_order(await gather(client, clock.now(), wanted), wanted.sort_by)
            made = table(shown, clock.now(), wanted, "No claims found.")
            before, known = known, _rows(shown, made)
            changed = [key for key, row in known.items() if before.get(key) != row]
            gone = [key for key in before if key not in known]
            if output.is_data:
                if changed or gone or not before:
                    print_document(list_of(shown, clock.now()), output)
            elif output.for_people and sys.stdout.isatty():
                clear(sys.stdout)
                print_table(made, wide=output == Output.WIDE, head=wanted.head)
            else:
                head = wanted.head and not before
                _print_changes(made, [key in changed for key in known], output, head=head)
                for namespace, name in gone:
                    print_lines(f"claim {namespace}/{name} is gone")
            sys.stdout.flush()


def _rows(shown: list[ClaimView], made: Table) -> dict[tuple[str, str], tuple[str, ...]]:
    """The rows by claim, without the ages, which change by themselves."""
    kept = [column.title not in {"AGE", "IDLE", "ALLOCATED", "USE"} for column in made.columns]
    rows = (tuple(compress(row, kept)) for row in made.rows)
    return {(view.namespace, view.name): row for view, row in zip(shown, rows, strict=True)}


def _print_changes(made: Table, changed: list[bool], output: Output, *, head: bool) -> None:
    """Print the rows or the names of the claims that have changed."""
    if output == Output.NAME:
        for name, is_new in zip(made.names, changed, strict=True):
            if is_new:
                print_lines(name)
    elif any(changed):
        rows = tuple(row for row, is_new in zip(made.rows, changed, strict=True) if is_new)
        print_table(replace(made, rows=rows), wide=output == Output.WIDE, head=head)


async def gather(client: Client, now: datetime, wanted: ClaimsWanted) -> list[ClaimView]:
    """The claims, read live, with what is wrong with them. Names that do not exist are left out."""
    claims, _ = await _read(client, wanted)
    return await _judge(client, now, wanted, claims)


async def _read(client: Client, wanted: ClaimsWanted) -> tuple[list[AskingClaim], list[str]]:
    """The claims, and the names that do not exist."""
    if not wanted.names:
        listing = await client.list(
            CLAIMS_WITH_REQUESTS, wanted.namespace, label_selector=wanted.selector, partial=True
        )
        _warn_unreadable(listing.unreadable)
        return list(listing.items), []
    claims: list[AskingClaim] = []
    missing: list[str] = []
    for name in dict.fromkeys(wanted.names):
        if claim := await client.find(CLAIMS_WITH_REQUESTS, name, wanted.namespace):
            claims.append(claim)
        else:
            missing.append(name)
    return claims, missing


async def _judge(
    client: Client, now: datetime, wanted: ClaimsWanted, claims: list[AskingClaim]
) -> list[ClaimView]:
    """The claims with what is wrong with them; of idle ones, if these are wanted, who waits."""
    if not claims:
        return []
    async with side_by_side() as group:
        listed = group.create_task(client.list(PODS, wanted.namespace, partial=True))
        reserving = group.create_task(list_if_served(client, CLAIMRESERVATIONS, wanted.namespace))
        places = await read_places(client)
    pods, reserved = listed.result(), reserving.result()
    _warn_unreadable((*pods.unreadable, *reserved.unreadable))
    shown = [judged(it, places, now) for it in views(claims, pods.items, reserved.items)]
    if not wanted.idle:
        return shown
    if not (idle := [view for view in shown if view.is_idle]):
        return []
    every = [
        claim
        for claim in await everywhere(client, CLAIMS_WITH_REQUESTS, wanted.namespace)
        if not vain_requests(ClaimView(claim, (), ()), places)
    ]
    waiting = waiting_pods(every, await everywhere(client, PODS, wanted.namespace))
    return [replace(view, waiting=waiting.get(view.claim.metadata.uid, ())) for view in idle]


def in_order(shown: list[ClaimView], column: str) -> list[ClaimView]:
    """The claims by a column of the table; those with an empty cell come last.

    Ages and numbers of consumers go up, so that the youngest claim comes first.
    """

    def key(view: ClaimView) -> tuple[bool, float, str]:
        match column:
            case "age":
                created = view.claim.metadata.creation_timestamp
                return created is None, -created.timestamp() if created else 0.0, ""
            case "consumers":
                return False, view.consumers.count, ""
        cell = {**_cells(view), "state": view.state}[column]
        return not cell, 0.0, cell

    return sorted(shown, key=key) if column else shown


def _warn_unreadable(unreadable: Iterable[Unreadable]) -> None:
    """Warn on stderr of objects that cannot be read: the output may lack them."""
    for unread in unreadable:
        say(f"warning: {unread.describe()}")


def _cells(view: ClaimView) -> dict[str, str]:
    """The cells that claims can be sorted by, in the order of the columns."""
    node, *more = view.nodes or ("",)
    return {
        "name": view.name,
        "state": view.shown_state,
        "devices": ",".join(view.devices),
        "node": f"{node}+{len(more)}" if more else node,
        "holders": view.holders,
        "retention": view.retention,
    }


_WIDE = ("CLASS", "ALLOCATED", "USE", "PROBLEMS", "PLACES", "CONSUMERS", "ORDINAL", "UID")
STATE_STYLES = {
    "Held": "green",
    "InUse": "green",
    "Allocated": "yellow",
    "Releasing": "cyan",
    "Deleting": "yellow",
    "Pending": "dim",
}


def table(shown: list[ClaimView], now: datetime, wanted: ClaimsWanted, empty: str = "") -> Table:
    head = (
        Column("NAME"),
        Column("STATE", styles=STATE_STYLES),
        *columns(
            *("DEVICES", "NODE", "HOLDERS", "RETENTION", "AGE", *_WIDE),
            drop=("AGE", "RETENTION", "NODE", "DEVICES", "HOLDERS"),
            wide=_WIDE,
        ),
    )
    if wanted.idle:
        head = (*head, *columns("IDLE", "UNTIL", "WAITING"))
    if not wanted.namespace:
        head = (Column("NAMESPACE"), *head)

    def row(view: ClaimView) -> Iterator[str]:
        if not wanted.namespace:
            yield view.namespace
        yield from _cells(view).values()
        yield age(view.claim.metadata.creation_timestamp, now)
        yield from (",".join(view.classes), _age(view.allocated_since, now), _use(view, now))
        yield ",".join(dict.fromkeys(matter.reason for matter in view.matters))
        yield from (view.places, str(view.consumers.count))
        yield from ("" if view.ordinal is None else str(view.ordinal), view.claim.metadata.uid)
        if wanted.idle:
            yield from (age(view.idle_since, now), end_of(view), listed(view.waiting or ()))

    return Table(
        columns=head,
        rows=tuple(tuple(row(view)) for view in shown),
        names=tuple(resource_name(CLAIM, view.name) for view in shown),
        empty=empty,
    )


def _age(since: datetime | None, now: datetime) -> str:
    return age(since, now) if since is not None else ""


def _use(view: ClaimView, now: datetime) -> str:
    """For how long pods have used the claim, or for how long none has."""
    if view.used_since is not None:
        return f"used {age(view.used_since, now)}"
    return f"idle {age(view.unused_since, now)}" if view.unused_since is not None else ""


async def none_found(client: Client, namespace: str, *, idle: bool = False) -> str:
    """What to say instead of an empty table; also if the namespace does not exist.

    Args:
        idle: whether only claims that are held without a pod were looked for.
    """
    try:
        if namespace:
            await client.get(NAMESPACES, namespace)
    except NotFound:
        return f"No claims found: there is no namespace {namespace}."
    except ApiError:  # to read a namespace is a right of its own
        pass
    if idle:
        return "No devices are held without a pod."
    return f"No claims found in namespace {namespace}." if namespace else "No claims found."
