"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.kinds import KindReader
from claimctl.cli.objects import resource_name
from claimctl.cli.output import print_text, printable
from claimctl.cli.printer import print_whole, say
from claimctl.cli.session import Session
from claimctl.commands.claims.claim_view import views
from claimctl.commands.claims.get_work import none_found
from claimctl.commands.tree import drawing
from claimctl.commands.tree.graph import Graph, around, build, document, merged
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.reservation.facts.pods import claim_names
from claimctl.wire import resources as wire


async def run(session: Session, wanted: list[str], output: Output, *, every_pod: bool) -> int:
    """Draw the objects that are connected with the wanted ones; all if there are none."""
    namespace = session.namespace
    graph = await read(session.client, namespace)
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
            print_text(output, drawing.lines(graph, branches), shown, named)


async def read(client: Client, namespace: str) -> Graph:
    """The graph of one namespace."""
    claims = (await client.list(wire.RESOURCECLAIMS, namespace, partial=True)).items
    pods = (await client.list(wire.PODS, namespace, partial=True)).items
    made = (await list_if_served(client, wire.CLAIMRESERVATIONS, namespace)).items
    kinds = KindReader(client)
    kinds.know(pod.metadata for pod in pods)
    # a list each instead of a request for each owner; without the right to it, chains are shorter
    for resource in (wire.REPLICASETS, *wire.WORKLOADS.values()):
        owners = await list_if_allowed(client, resource, namespace)
        kinds.know(owner.metadata for owner in owners.items)
    users = [pod for pod in pods if claim_names(pod)]
    chains = {pod.metadata.uid: await kinds.chain(pod) for pod in users}
    return build(views(claims, pods, made), pods, chains)
