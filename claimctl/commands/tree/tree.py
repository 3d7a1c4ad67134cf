"""``claimctl tree``: workload, pods, claims, devices and nodes that hang together."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, output_option
from claimctl.cli.objects import CLAIM, NODE, POD, WORKLOADS, parse
from claimctl.cli.options import NamespaceOption, switch

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
    pods: Annotated[bool, switch("--pods", "Show each pod, however many there are.")] = False,
    output: Annotated[
        Output, output_option("table", "wide", "mermaid", "dot", "name")
    ] = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show how workloads, pods, claims, devices and nodes are connected."""
    kinds = (CLAIM, POD, NODE, *WORKLOADS)
    wanted = ["/".join(parse(name, CLAIM, kinds)) for name in names or ()]

    from claimctl.cli.session import in_session
    from claimctl.commands.tree.work import run

    return in_session(access, run, namespace, wanted, output, every_pod=pods)
