"""``claimctl timeline``: who held a claim's devices when."""

from __future__ import annotations

import shutil

from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import print_text, printable
from claimctl.cli.printer import print_whole
from claimctl.cli.session import Session
from claimctl.commands.claims.missing import naming
from claimctl.commands.timeline import html, svg, text
from claimctl.commands.timeline.model import Timeline
from claimctl.commands.timeline.read import read


async def run(session: Session, claim: str, output: Output) -> int:
    namespace = session.namespace
    async with naming(session.client, CLAIM, namespace, claim):
        timeline = await read(session.client, session.clock, namespace, claim)
    print_timeline(timeline, output)
    return 0


def print_timeline(timeline: Timeline, output: Output) -> None:
    match output:
        case Output.SVG:
            print_whole(svg.document(timeline))
        case Output.HTML:
            print_whole(html.document(timeline))
        case _:
            signs = printable(text.BLOCKS, text.ASCII)
            width = shutil.get_terminal_size((100, 24)).columns
            named = (resource_name(CLAIM, timeline.claim),)
            print_text(output, text.lines(timeline, width, signs), timeline, named)
