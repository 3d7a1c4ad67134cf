"""``claimctl timeline``: who held a claim's devices when."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.options import (
    ClaimArgument,
    NamespaceOption,
)

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.timeline.model import Timeline


class Picture(StrEnum):
    TEXT = "text"
    SVG = "svg"
    HTML = "html"
    JSON = "json"
    YAML = "yaml"


EXAMPLES = (
    "claimctl timeline train-slice",
    "claimctl timeline train-slice -n ml -o svg > train-slice.svg",
)


@connecting
def command(
    claim: ClaimArgument,
    namespace: NamespaceOption = None,
    output: Annotated[Picture, typer.Option("--output", "-o", help="Output format.")] = (
        Picture.TEXT
    ),
    access: Access = DEFAULT,
) -> int:
    """Show who held a claim's devices when: devices, holders and pods over time.

    The picture is made of the objects and Events. An embedded cluster knows its whole history.
    """
    from claimctl.cli.session import in_session

    async def work(session: Session) -> int:
        return await run(session, namespace or session.namespace, claim, output)

    return in_session(access, work)


async def run(session: Session, namespace: str, claim: str, output: Picture) -> int:
    from claimctl.cli.errors import CommandFailed
    from claimctl.kube.errors import NotFound
    from claimctl.timeline.read import read

    try:
        found = await read(session.client, session.clock, namespace, claim)
    except NotFound as error:
        raise CommandFailed(f"claim {namespace}/{claim} not found") from error
    print_timeline(found, output)
    return 0


def print_timeline(found: Timeline, output: Picture) -> None:
    import shutil
    import sys

    from claimctl.cli.options import Data
    from claimctl.cli.output import print_document
    from claimctl.timeline import document, html, svg, text

    match output:
        case Picture.TEXT:
            signs = text.Signs.of(sys.stdout.encoding or "ascii")
            width = shutil.get_terminal_size((100, 24)).columns
            print("\n".join(text.lines(found, width, signs)))
        case Picture.SVG:
            print(svg.document(found), end="")
        case Picture.HTML:
            print(html.document(found), end="")
        case form:
            print_document(document.document(found), Data(form.value))
