"""``claimctl explain``: who holds a claim and why, or why a pod or a workload waits."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from io import StringIO

from claimctl.cli.documents import Document
from claimctl.cli.errors import UsageError
from claimctl.cli.extensions import extensions
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, NODE, POD, RESERVATION, resource_name
from claimctl.cli.output import print_text
from claimctl.cli.printer import print_lines, print_whole
from claimctl.cli.session import Session
from claimctl.cli.watching import changes, clear
from claimctl.commands.claims import explain_text
from claimctl.commands.claims.claim_document import explanation_of, unreadable_of
from claimctl.commands.claims.explanation import explain_with_controller
from claimctl.commands.claims.matters import SEE_THE_CLAIM, WRONG, MatterKind
from claimctl.commands.claims.meanings import MEANINGS, ReasonMeaning
from claimctl.commands.claims.missing import naming
from claimctl.commands.claims.node_explanation import explain_node, node_lines
from claimctl.commands.claims.pod_document import PodExplanation, pod_of
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.workload_document import workload_of
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.kube.errors import UnreadableObject
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS


class ReasonExplanation(Document, frozen=True, kw_only=False):
    """``claimctl explain reason/NAME``"""

    reason: str
    topic: str
    meaning: str
    remedy: str


async def explain_object(
    session: Session, kind: str, name: str, output: Output, *, watch: bool
) -> int:
    """Explain an object once, or again after every change; the exit code."""
    place = session.namespace
    async with naming(session.client, kind, place, name):
        if watch:
            await follow(session, place, kind, name, output)
        return await run(session, place, kind, name, output)


def explain_reason(name: str, output: Output) -> int:
    """Print what a reason means and what to do about it. No cluster is asked."""
    meanings = {str(reason): meaning for reason, meaning in MEANINGS.items()}
    for extension in extensions().values():
        if reasons := extension.reasons():
            for word, text in reasons.meanings.items():
                meanings.setdefault(word, ReasonMeaning(reasons.topic, text, reasons.remedy))
    for kind in MatterKind:
        text = f"{kind[0].upper()}{kind[1:]}."
        meanings.setdefault(kind.reason, ReasonMeaning(WRONG, text, SEE_THE_CLAIM))
    by_lower_case = {word.lower(): word for word in meanings}
    known = by_lower_case.get(name.lower())
    if known is None:
        near = [by_lower_case[word] for word in get_close_matches(name.lower(), by_lower_case)]
        hint = f"did you mean {' or '.join(near)}?" if near else "see docs/reference/reasons.md"
        raise UsageError(f"reason/{name}: no such reason; {hint}")
    meaning = meanings[known]
    lines = [f"{known}: {meaning.meaning}", f"What to do: {meaning.remedy or 'nothing'}"]
    document = ReasonExplanation(known, meaning.topic, meaning.meaning, meaning.remedy)
    print_text(output, lines, document, (f"reason/{known}",))
    return 0


async def follow(session: Session, namespace: str, kind: str, name: str, output: Output) -> None:
    """Explain the object again after every change in its namespace, for ever."""
    before = ""
    async with changes(session.client, session.clock, namespace) as news:
        async for _ in news:
            with redirect_stdout(StringIO()) as text:
                await run(session, namespace, kind, name, output)
            if text.getvalue() == before:
                continue
            if sys.stdout.isatty() and output.for_people:
                clear(sys.stdout)
            elif before and (output.for_people or output == Output.YAML):
                print_lines("---")
            before = text.getvalue()
            print_whole(before)


async def run(session: Session, namespace: str, kind: str, name: str, output: Output) -> int:
    """Explain the object once; the exit code. A kind that is none of these is a workload's."""
    client, clock, named = session.client, session.clock, (resource_name(kind, name),)
    if kind == CLAIM:
        await _explain_claim(session, namespace, name, output)
    elif kind == RESERVATION:
        await _explain_claim_of(session, namespace, name, output)
    elif kind == NODE:
        node = await explain_node(session, name)
        print_text(output, node_lines(node), node, named)
    elif kind == POD:
        pod = pod_of(await explain_pod(client, namespace, name, clock), PodExplanation)
        print_text(output, explain_text.pod_lines(pod), pod, named)
    else:
        workload = workload_of(await explain_workload(client, namespace, kind, name, clock))
        print_text(output, explain_text.workload_lines(workload), workload, named)
    return 0


async def _explain_claim_of(
    session: Session, namespace: str, reservation: str, output: Output
) -> None:
    """Explain the claim that a ClaimReservation names."""
    made = await session.client.get(CLAIMRESERVATIONS, reservation, namespace)
    claim = made.spec.resource_claim_name
    command = f"kubectl -n {namespace} describe claimreservation {reservation}"
    about = f"ClaimReservation {reservation}: "
    fix = f"; create {claim}, or see who asks for it: {command}"
    async with naming(session.client, CLAIM, namespace, claim, about, fix):
        await _explain_claim(session, namespace, claim, output)


async def _explain_claim(session: Session, namespace: str, claim: str, output: Output) -> None:
    """Explain a claim; of one that cannot be read, say why."""
    try:
        shown = await explain_with_controller(session.client, namespace, claim, session.clock)
        document = explanation_of(shown, session.clock.now())
    except UnreadableObject as error:
        if error.unreadable.resource.plural != RESOURCECLAIMS.plural:
            raise
        document = unreadable_of(error.unreadable)
    lines = explain_text.claim_lines(document)
    print_text(output, lines, document, (resource_name(CLAIM, claim),))
