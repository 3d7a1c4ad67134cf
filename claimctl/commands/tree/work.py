"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from datetime import datetime

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.kinds import KindReader
from claimctl.cli.objects import resource_name
from claimctl.cli.output import print_text, printable
from claimctl.cli.printer import print_whole, say
from claimctl.cli.session import Session
from claimctl.commands.claims.claim_view import views
from claimctl.commands.claims.device_classes import CLAIMS_WITH_REQUESTS
from claimctl.commands.claims.get_work import none_found
from claimctl.commands.claims.judgement import judged
from claimctl.commands.claims.places import read_places
from claimctl.commands.tree import drawing
from claimctl.commands.tree.graph import Graph, around, build, document, merged
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.parallel import side_by_side
from claimctl.reservation.facts.pods import claim_names
from claimctl.wire import resources as wire


async def run(session: Session, wanted: list[str], output: Output, *, every_pod: bool) -> int:
    """Draw the objects that are connected with the wanted ones; all if there are none."""
    namespace = session.namespace
    graph = await read(session.client, namespace, session.clock.now())
    for key in wanted:
        if key not in graph.vertices:
            raise CommandFailed(
                f"{key} not found in namespace {namespace}, or no claim is connected with it"
            )
    if wanted:
        graph = around(graph, wanted)
    if not output.is_data and output != Output.NAME and not every_pod:
        graph = merged(graph)
    if not graph.vertices and output.for_people:
        say(await none_found(session.client, namespace))
        return 0
    print_graph(graph, namespace, output)
    return 0


def print_graph(graph: Graph, namespace: str, output: Output) -> None:
    match output:
        case Output.MERMAID:
            print_whole(drawing.mermaid(graph))
        case Output.DOT:
            print_whole(drawing.dot(graph))
        case _:
            branches = printable(drawing.LINES, drawing.ASCII)
            named = [resource_name(*key.split("/", 1)) for key in graph.vertices]
            shown = document(graph, namespace)
            lines = [
                *drawing.lines(graph, branches),
                *drawing.problem_lines(shown.problems, namespace),
            ]
            print_text(output, lines, shown, named)


async def read(client: Client, namespace: str, now: datetime) -> Graph:
    """The graph of one namespace, '' for all, with what is wrong with its claims."""
    async with side_by_side() as group:
        listing = group.create_task(client.list(CLAIMS_WITH_REQUESTS, namespace, partial=True))
        using = group.create_task(client.list(wire.PODS, namespace, partial=True))
        reserving = group.create_task(list_if_served(client, wire.CLAIMRESERVATIONS, namespace))
        places = await read_places(client)
    claims, pods, made = listing.result().items, using.result().items, reserving.result().items
    kinds = KindReader(client)
    kinds.know(pod.metadata for pod in pods)
    # a list each instead of a request for each owner; without the right to it, chains are shorter
    for resource in (wire.REPLICASETS, *wire.WORKLOADS.values()):
        owners = await list_if_allowed(client, resource, namespace)
        kinds.know(owner.metadata for owner in owners.items)
    users = [pod for pod in pods if claim_names(pod)]
    chains = {pod.metadata.uid: await kinds.chain(pod) for pod in users}
    shown = [judged(view, places, now) for view in views(claims, pods, made)]
    return build(shown, pods, chains, places.nodes, everywhere=not namespace)
