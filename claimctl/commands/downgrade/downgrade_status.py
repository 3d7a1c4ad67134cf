"""``claimctl downgrade-status``: which step of a downgrade is next, and what is in its way."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption

SwitchedOffOption = Annotated[
    list[str] | None,
    typer.Option(
        "--switched-off",
        metavar="COMPONENT",
        help="You have switched the feature off there: api-server, scheduler, "
        "kube-controller-manager or kubelets; may be repeated. Use it where the cluster does not "
        "show it. [default: only what the cluster shows]",
    ),
]
WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch",
        "-w",
        help="Print again after each change, until the last step is done. [default: off]",
    ),
]


EXAMPLES = (
    "claimctl downgrade-status",
    "claimctl downgrade-status -o json",
)


@connecting_patiently
def command(
    switched_off: SwitchedOffOption = None,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show the next step of a downgrade, what each component does now, and the blocked claims.

    Exit code 3: something is in the way of the next step.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.downgrade.status_work import parts, run

    return in_session(access, run, None, parts(switched_off or ()), output, watch=watch)
