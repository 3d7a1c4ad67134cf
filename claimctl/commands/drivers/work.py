"""Check a driver on each of its nodes, print a line for each, and leave nothing."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.output import Column, Table, render
from claimctl.cli.printer import say
from claimctl.cli.progress import Progress, progress
from claimctl.cli.session import Session
from claimctl.commands.drivers.choosing import (
    Published,
    choose_class,
    choose_nodes,
)
from claimctl.commands.drivers.documents import document
from claimctl.commands.drivers.leftovers import remove, remove_leftovers, renewed
from claimctl.commands.drivers.manifests import Check
from claimctl.commands.drivers.trying import NodeTry
from claimctl.commands.drivers.verdict import (
    NodeSeen,
    answer_of,
    habits_of,
    not_tried,
    seen_in_words,
    tasks_of,
)
from claimctl.controller.preflight import BINDING
from claimctl.kube.client import Client
from claimctl.kube.discovery import server_version
from claimctl.kube.errors import KubeError
from claimctl.live_objects import list_if_allowed
from claimctl.parallel import in_parallel
from claimctl.wire.access_reviews import Right
from claimctl.wire.nodes import Node
from claimctl.wire.releases import FROM_1_36
from claimctl.wire.resources import DEVICECLASSES, JOBS, NODES, RESOURCESLICES

NODES_AT_ONCE = 8
RIGHTS = (
    *(Right(verb, "batch", "jobs") for verb in ("create", "get", "list", "patch", "delete")),
    *(Right(verb, "", "pods") for verb in ("create", "get", "list", "patch", "delete")),
    *(
        Right(verb, "resource.k8s.io", "resourceclaims")
        for verb in ("create", "get", "list", "delete")
    ),
    Right("patch", "resource.k8s.io", "resourceclaims", "status"),
    Right("list", "events.k8s.io", "events"),
)
"""What the command needs in the namespace."""
CLUSTER_RIGHTS = tuple(
    Right("list", "resource.k8s.io", plural) for plural in ("resourceslices", "deviceclasses")
)


@dataclass(frozen=True, slots=True)
class CheckWanted:
    """What the flags ask for; '' leaves the choice to the command."""

    driver: str
    node: str
    device_class: str
    image: str
    seconds: float


@dataclass(slots=True)
class CheckRun:
    """One run of the command, with what came out of it."""

    check: Check
    nodes: dict[str, NodeSeen] = field(default_factory=dict)
    left: tuple[str, ...] = ()


async def run(session: Session, wanted: CheckWanted, output: Output) -> int:
    """Check the driver, and print what was seen; the exit code."""
    with progress(f"checking {wanted.driver}") as line:
        done = await examine(session.client, session.namespace, wanted, line)
    seen = [done.nodes[name] for name in sorted(done.nodes)]
    render(output, table(seen, wanted.driver), document(done.check, seen, done.left))
    if output.for_people:
        _conclude(done.left)
    news = any(not it.complete or tasks_of(it, wanted.driver) for it in seen)
    return ExitCode.FINDINGS if news or done.left else ExitCode.OK


async def examine(client: Client, namespace: str, wanted: CheckWanted, line: Progress) -> CheckRun:
    """Check the driver on its nodes.

    Raises:
        UsageError: there is no such driver, node or class, or not exactly one class.
        CommandFailed: a right is missing.
        KubeError: a request failed; everything was removed.
    """
    await _expect_rights(client, namespace)
    slices = (await client.list(RESOURCESLICES, partial=True)).items
    there = choose_nodes(wanted.driver, slices, wanted.node)
    classes = (await client.list(DEVICECLASSES, partial=True)).items
    device_class = choose_class(wanted.driver, classes, wanted.device_class)
    nodes = {node.metadata.name: node for node in (await list_if_allowed(client, NODES)).items}
    await remove_leftovers(client, namespace, line.say)
    name = f"claimctl-check-{secrets.token_hex(4)}"
    made = CheckRun(Check(name, namespace, wanted.driver, device_class, wanted.image))
    async with _made(client, made, line):
        await _try_all(client, made, there, nodes, wanted.seconds, line)
    return made


async def _expect_rights(client: Client, namespace: str) -> None:
    binding = await server_version(client) >= FROM_1_36
    of_cluster = (*CLUSTER_RIGHTS, *((BINDING,) if binding else ()))
    missing = [right for right in RIGHTS if not await client.allowed(right, namespace)]
    missing += [right for right in of_cluster if not await client.allowed(right)]
    if missing:
        raise CommandFailed(
            f"you may not {', '.join(map(str, missing))} in namespace {namespace}: the ClusterRole "
            "claimctl-driver-check has these rights, and a namespace for yourself is best (-n)"
        )


@asynccontextmanager
async def _made(client: Client, run: CheckRun, line: Progress) -> AsyncIterator[None]:
    """Make the Job that owns all else, and remove everything in the end, also after Ctrl-C."""
    check = run.check
    try:
        job = await client.create(JOBS, check.job(), check.namespace)
        run.check = replace(check, uid=job.metadata.uid)
        async with renewed(client, run.check):
            yield
    finally:
        line.say("removing what the check has made")
        try:
            run.left = await remove(client, check.namespace, check.name)
        except KubeError as error:
            line.say(f"could not remove all of it, Kubernetes will in a minute: {error}")


async def _try_all(
    client: Client,
    run: CheckRun,
    there: Mapping[str, Published],
    nodes: Mapping[str, Node],
    seconds: float,
    line: Progress,
) -> None:
    numbers = {name: number for number, name in enumerate(there, start=1)}

    async def one_node(name: str) -> None:
        node = nodes.get(name)
        kubelet = node.status.node_info.kubelet_version if node is not None else ""
        if node is not None and node.status.is_unready:
            run.nodes[name] = NodeSeen(name, kubelet, skipped="the node is not ready")
            return
        claim = f"{run.check.name}-{numbers[name]}"
        tried = NodeTry(client, run.check, there[name], claim, seconds, line.say)
        run.nodes[name] = replace(await tried.run(), kubelet=kubelet)
        line.count("nodes", len(run.nodes), len(there))

    await in_parallel(one_node, there, NODES_AT_ONCE)


def table(nodes: list[NodeSeen], driver: str) -> Table:
    return Table(
        columns=(
            Column("NODE"),
            Column("HABITS"),
            Column("SEEN", text=True),
            Column("CLAIMCTL", text=True),
        ),
        rows=tuple(
            (
                seen.node,
                ",".join(habits_of(seen)) or "-",
                seen_in_words(seen),
                answer_of(seen, driver),
            )
            for seen in nodes
        ),
    )


def _conclude(left: tuple[str, ...]) -> None:
    untried = (f"{name} (needs {needs})" for name, needs in not_tried().items())
    say(f"not tried: {', '.join(untried)}")
    if left:
        say(f"still being deleted, until the driver unprepares: {', '.join(left)}")
