"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.options import (
    NamespaceOption,
)

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.tree.graph import Graph


class Diagram(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    YAML = "yaml"


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
    output: Annotated[Diagram, typer.Option("--output", "-o", help="Output format.")] = (
        Diagram.TEXT
    ),
    access: Access = DEFAULT,
) -> int:
    """Show what hangs together: workload, pods, claims, devices and nodes."""
    from claimctl.cli.objects import CLAIM, NODE, POD, WORKLOADS, parse
    from claimctl.cli.session import in_session

    kinds = (CLAIM, POD, NODE, *WORKLOADS)
    wanted = ["/".join(parse(each, CLAIM, kinds)) for each in names or ()]

    async def work(session: Session) -> int:
        return await run(session, namespace or session.namespace, wanted, output, every_pod=pods)

    return in_session(access, work)


async def run(
    session: Session, namespace: str, wanted: list[str], output: Diagram, *, every_pod: bool
) -> int:
    from claimctl.cli.errors import CommandFailed
    from claimctl.tree.graph import around, merged
    from claimctl.tree.read import read

    graph = await read(session.client, namespace)
    for key in wanted:
        if key not in graph.vertices:
            raise CommandFailed(
                f"{key} not found in namespace {namespace}, or no claim is connected with it"
            )
    if wanted:
        graph = around(graph, wanted)
    if output in (Diagram.TEXT, Diagram.MERMAID, Diagram.DOT) and not every_pod:
        graph = merged(graph)
    print_graph(graph, namespace, output)
    return 0


def print_graph(graph: Graph, namespace: str, output: Diagram) -> None:
    import sys

    from claimctl.cli.options import Data
    from claimctl.cli.output import print_document
    from claimctl.tree import diagrams, document, text

    match output:
        case Diagram.TEXT if not graph.vertices:
            typer.echo(f"No claims found in namespace {namespace}.", err=True)
        case Diagram.TEXT:
            branches = text.Branches.of(sys.stdout.encoding or "ascii")
            print("\n".join(text.lines(graph, branches)))
        case Diagram.MERMAID:
            print(diagrams.mermaid(graph))
        case Diagram.DOT:
            print(diagrams.dot(graph))
        case form:
            print_document(document.document(graph, namespace), Data(form.value))
