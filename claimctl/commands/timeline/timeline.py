"""``claimctl timeline``: who held a claim's devices when."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import ClaimArgument, NamespaceOption

EXAMPLES = (
    "claimctl timeline train-slice",
    "claimctl timeline train-slice -n ml -o svg > train-slice.svg",
)


@connecting
def command(
    claim: ClaimArgument,
    namespace: NamespaceOption = None,
    output: Annotated[Output, output_option("table", "wide", "svg", "html", "name")] = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show who held a claim's devices when: devices, holders and pods over time.

    The picture is made of the objects and Events. An embedded cluster knows its whole history.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.timeline.work import run

    return in_session(access, run, namespace, claim, output)
