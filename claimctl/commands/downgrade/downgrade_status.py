"""``claimctl downgrade-status``: which step of a downgrade is next, and what is in its way."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import named, switch

SwitchedOffOption = Annotated[
    list[str] | None,
    named(
        "--switched-off COMPONENT",
        "You have switched the feature off there: api-server, scheduler, kube-controller-manager "
        "or kubelets; may be repeated. Use it where the cluster does not show it.",
        "only what the cluster shows",
    ),
]
WatchOption = Annotated[
    bool, switch("--watch -w", "Print again after each change, until the last step is done.")
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
