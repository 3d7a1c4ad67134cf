"""``claimctl explain``: who holds a claim and why, or why a pod or a workload waits."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.objects import CLAIM, NODE, POD, RESERVATION, RESERVED_FOR, parse
from claimctl.cli.options import NamespaceOption, WatchOption

EXAMPLES = (
    "claimctl explain train-slice            # who holds the claim, and what would release it",
    "claimctl explain pod/train-0            # why the pod waits, and who has the devices",
    "claimctl explain deployment/train -n ml",
    "claimctl explain node/node-2            # whose devices it has, before a drain",
    "claimctl explain train-slice -o json",
)


@connecting
def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="OBJECT",
            help="A claim, or kind/NAME: pod, node, deployment, statefulset, job, another kind "
            "with a rule, claimreservation; or reason/NAME for what a reason means.",
        ),
    ],
    namespace: NamespaceOption = None,
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
    access: Access = DEFAULT,
) -> int:
    """Show who holds a claim and why, or why a pod or a workload waits, and what to do."""
    from claimctl.cli.session import in_session
    from claimctl.commands.claims.explain_work import explain_object, explain_reason

    word, _, reason = target.partition("/")
    if word.lower() == "reason":
        return explain_reason(reason, output)
    kind, name = parse(target, CLAIM, (CLAIM, POD, NODE, RESERVATION, *RESERVED_FOR), others=True)
    return in_session(access, explain_object, namespace, kind, name, output, watch=watch)
