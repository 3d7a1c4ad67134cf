"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, output_option
from claimctl.cli.objects import CLAIM, NODE, POD, WORKLOADS, parse
from claimctl.cli.options import AllNamespacesOption, NamespaceOption, place_of, switch

EXAMPLES = (
    "claimctl tree                           # everything in the namespace",
    "claimctl tree deployment/train -n ml",
    "claimctl tree -A",
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
    all_namespaces: AllNamespacesOption = False,
    pods: Annotated[bool, switch("--pods", "Show each pod, however many there are.")] = False,
    output: Annotated[
        Output, output_option("table", "wide", "mermaid", "dot", "name")
    ] = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show how workloads, pods, claims, devices and nodes are connected."""
    place = place_of(namespace, all_namespaces=all_namespaces)
    if names and all_namespaces:
        raise UsageError("names of objects cannot be given together with -A")
    kinds = (CLAIM, POD, NODE, *WORKLOADS)
    wanted = ["/".join(parse(name, CLAIM, kinds)) for name in names or ()]

    from claimctl.cli.session import in_session
    from claimctl.commands.tree.work import run

    return in_session(access, run, place, wanted, output, every_pod=pods)
