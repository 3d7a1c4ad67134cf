"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import NamespaceOption

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.commands.tree.graph import Graph


EXAMPLES = (
    "claimctl tree                           # everything in the namespace",
    "claimctl tree deployment/train -n ml",
    "claimctl tree -o mermaid",
)


@connecting
def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OBJECT]...",
            help="Claims, or objects as kind/name: pod/train-1, deploy/train. [default: all]",
        ),
    ] = None,
    namespace: NamespaceOption = None,
    pods: Annotated[
        bool, typer.Option("--pods", help="Show each pod, however many there are. [default: off]")
    ] = False,
    output: Annotated[
        Output, output_option("table", "wide", "mermaid", "dot", "name")
    ] = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show how workloads, pods, claims, devices and nodes are connected."""
    from claimctl.cli.objects import CLAIM, NODE, POD, WORKLOADS, parse
    from claimctl.cli.session import in_session

    kinds = (CLAIM, POD, NODE, *WORKLOADS)
    wanted = ["/".join(parse(each, CLAIM, kinds)) for each in names or ()]

    async def work(session: Session) -> int:
        return await run(session, namespace or session.namespace, wanted, output, every_pod=pods)

    return in_session(access, work)


async def run(
    session: Session, namespace: str, wanted: list[str], output: Output, *, every_pod: bool
) -> int:
    from claimctl.cli.errors import CommandFailed
    from claimctl.commands.tree.graph import around, merged
    from claimctl.commands.tree.read import read

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
    print_graph(graph, namespace, output)
    return 0


def print_graph(graph: Graph, namespace: str, output: Output) -> None:
    import sys

    from claimctl.cli.objects import resource_name
    from claimctl.cli.output import print_text
    from claimctl.commands.tree import diagrams, document, text

    match output.form:
        case "table" | "wide" if not graph.vertices:
            typer.echo(f"No claims found in namespace {namespace}.", err=True)
        case "mermaid":
            print(diagrams.mermaid(graph))
        case "dot":
            print(diagrams.dot(graph))
        case _:
            branches = text.Branches.of(sys.stdout.encoding or "ascii")
            named = [resource_name(*key.split("/", 1)) for key in graph.vertices]
            shown = document.document(graph, namespace)
            print_text(output, text.lines(graph, branches), shown, named)
