"""``claimctl timeline``: who held a claim's devices when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import ClaimArgument, NamespaceOption

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.commands.timeline.model import Timeline


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

    async def work(session: Session) -> int:
        return await run(session, namespace or session.namespace, claim, output)

    return in_session(access, work)


async def run(session: Session, namespace: str, claim: str, output: Output) -> int:
    from claimctl.cli.errors import CommandFailed
    from claimctl.commands.timeline.read import read
    from claimctl.kube.errors import NotFound

    try:
        found = await read(session.client, session.clock, namespace, claim)
    except NotFound as error:
        raise CommandFailed(f"claim {namespace}/{claim} not found") from error
    print_timeline(found, output)
    return 0


def print_timeline(found: Timeline, output: Output) -> None:
    import shutil
    import sys

    from claimctl.cli.objects import CLAIM, resource_name
    from claimctl.cli.output import print_text
    from claimctl.commands.timeline import document, html, svg, text

    match output.form:
        case "svg":
            print(svg.document(found), end="")
        case "html":
            print(html.document(found), end="")
        case _:
            signs = text.Signs.of(sys.stdout.encoding or "ascii")
            width = shutil.get_terminal_size((100, 24)).columns
            named = (resource_name(CLAIM, found.claim),)
            print_text(output, text.lines(found, width, signs), document.document(found), named)
