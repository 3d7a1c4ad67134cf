"""``claimctl explain``: who holds a claim and why, or why a pod or a workload waits."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import NamespaceOption, WatchOption

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.inspect.explain import Explanation
    from claimctl.kube.client import Client
    from claimctl.wire.unreadable import Unreadable


EXAMPLES = (
    "claimctl explain train-slice            # who holds the claim, and what would release it",
    "claimctl explain pod/train-0            # why the pod waits, and who has the devices",
    "claimctl explain deployment/train -n ml",
    "claimctl explain train-slice -o json",
)


@connecting
def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="OBJECT",
            help="A claim, or kind/NAME: pod, deployment, statefulset, job, claimreservation; or "
            "reason/NAME for what a reason means.",
        ),
    ],
    namespace: NamespaceOption = None,
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
    access: Access = DEFAULT,
) -> int:
    """Show who holds a claim and why, or why a pod or a workload waits, and what to do."""
    from claimctl.cli.objects import CLAIM, POD, RESERVATION, parse
    from claimctl.cli.session import in_session

    word, _, reason = target.partition("/")
    if word.lower() == "reason":
        return explain_reason(reason, output)
    kind, name = parse(target, CLAIM, (CLAIM, POD, RESERVATION, *KINDS))

    async def work(session: Session) -> int:
        place = namespace or session.namespace
        async with naming(session.client, kind, place, name):
            if watch:
                await follow(session, place, kind, name, output)
            return await run(session, place, kind, name, output)

    return in_session(access, work)


def explain_reason(name: str, output: Output) -> int:
    """Print what a reason means and what to do about it. No cluster is asked."""
    from claimctl.cli.errors import UsageError
    from claimctl.cli.output import print_text
    from claimctl.inspect.meanings import MEANINGS

    found = {str(reason).lower(): reason for reason in MEANINGS}.get(name.lower())
    if found is None:
        raise UsageError(f"reason/{name}: no such reason; there are {', '.join(MEANINGS)}")
    meaning = MEANINGS[found]
    document = {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ReasonExplanation",
        "reason": str(found),
        "topic": str(meaning.topic),
        "meaning": meaning.meaning,
        "remedy": meaning.remedy,
    }
    told = [f"{found}: {meaning.meaning}", f"What to do: {meaning.remedy or 'nothing'}"]
    print_text(output, told, document, (f"reason/{found}",))
    return 0


KINDS = ("Deployment", "StatefulSet", "Job")
"""The kinds of workloads that can be explained: those that claims are reserved for."""


@asynccontextmanager
async def naming(client: Client, kind: str, namespace: str, name: str) -> AsyncIterator[None]:
    """Raise CommandFailed with a plain sentence if the object does not exist."""
    from claimctl.cli.errors import CommandFailed
    from claimctl.kube.errors import NotFound

    try:
        yield
    except NotFound as error:
        if f'"{name}" not found' not in error.message:
            raise
        what = "claim" if kind == "ResourceClaim" else kind
        others = await _others(client, namespace) if what == "claim" else ""
        raise CommandFailed(f"{what} {namespace}/{name} not found{others}") from error


async def _others(client: Client, namespace: str) -> str:
    """The claims that there are, for a user who has mistyped one."""
    from claimctl.kube.errors import KubeError
    from claimctl.text import listed
    from claimctl.wire.resources import RESOURCECLAIMS

    try:
        found = (await client.list(RESOURCECLAIMS, namespace, partial=True)).items
    except KubeError:
        return ""
    names = sorted(each.metadata.name for each in found)
    return f"; there are: {listed(names, 5)}" if names else "; there is no claim in the namespace"


async def follow(session: Session, namespace: str, kind: str, name: str, output: Output) -> None:
    """Explain the object again after every change in its namespace, for ever."""
    from claimctl.cli.watching import changes, clear
    from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS

    watched = (RESOURCECLAIMS, PODS, CLAIMRESERVATIONS)
    before = ""
    async with changes(session.client, session.clock, namespace, watched) as each:
        async for _ in each:
            with redirect_stdout(StringIO()) as text:
                await run(session, namespace, kind, name, output)
            if text.getvalue() == before:
                continue
            if sys.stdout.isatty() and output.for_people:
                clear(sys.stdout)
            elif before and (output.for_people or output == Output.YAML):
                print("---")
            before = text.getvalue()
            print(before, end="", flush=True)


async def run(session: Session, namespace: str, kind: str, name: str, output: Output) -> int:
    from claimctl.cli import explain_pods as texts
    from claimctl.cli.objects import POD, RESERVATION, resource_name
    from claimctl.cli.output import print_text
    from claimctl.inspect.explain_pods import explain_pod, explain_workload
    from claimctl.wire.resources import CLAIMRESERVATIONS

    client, clock = session.client, session.clock
    if kind == POD:
        pod = await explain_pod(client, namespace, name, clock)
        named = (resource_name(kind, name),)
        print_text(output, texts.pod_lines(pod), texts.pod_document(pod), named)
    elif kind in KINDS:
        found = await explain_workload(client, namespace, kind, name, clock)
        named = (resource_name(kind, name),)
        print_text(output, texts.workload_lines(found), texts.workload_document(found), named)
    else:
        if kind == RESERVATION:
            made = await client.get(CLAIMRESERVATIONS, name, namespace)
            name = made.spec.resource_claim_name
        await _claim(session, namespace, name, output)
    return 0


async def _claim(session: Session, namespace: str, claim: str, output: Output) -> None:
    from claimctl.inspect.explain import explain_with_controller
    from claimctl.kube.errors import UnreadableObject
    from claimctl.wire.resources import RESOURCECLAIMS

    try:
        shown = await explain_with_controller(session.client, namespace, claim, session.clock)
    except UnreadableObject as error:
        if error.found.resource.plural != RESOURCECLAIMS.plural:
            raise
        show_unread(error.found, output)
        return
    show(shown, session.clock.now(), output)


def show(explanation: Explanation, now: datetime, output: Output) -> None:
    from claimctl.cli.objects import CLAIM, resource_name
    from claimctl.cli.output import print_text

    named = (resource_name(CLAIM, explanation.view.name),)
    print_text(output, lines(explanation), document(explanation, now), named)


def show_unread(found: Unreadable, output: Output) -> None:
    """Print what is known about a claim that cannot be read."""
    from claimctl.cli.objects import CLAIM, resource_name
    from claimctl.cli.output import print_text
    from claimctl.inspect.advice import UNREADABLE

    shown = {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ClaimExplanation",
        "unreadable": [_unread(found)],
        "advice": [UNREADABLE],
    }
    told = [found.describe(), _LEFT_ALONE, "What to do:", f"  {UNREADABLE}"]
    print_text(output, told, shown, (resource_name(CLAIM, found.name),))


_LEFT_ALONE = "The controller leaves the claim alone until that can be read."


def _unread(found: Unreadable) -> dict[str, str]:
    return {
        "kind": found.resource.kind,
        "namespace": found.namespace,
        "name": found.name,
        "message": found.problem,
    }


def document(explanation: Explanation, now: datetime) -> dict[str, Any]:
    from claimctl.inspect import claim_view as claims_view
    from claimctl.inspect.advice import advice

    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ClaimExplanation",
        "claim": claims_view.document(explanation.view, now),
        "reservations": [
            _reservation(retention) for retention in explanation.assessment.retentions
        ],
        "release": {
            "underWay": explanation.release,
            "possible": explanation.releasable,
            "blockers": [
                {"reason": one.reason, "message": one.message, "afterSeconds": one.after}
                for one in explanation.obstacles
            ],
        },
        "asked": list(explanation.asked),
        "orphan": _orphan_document(explanation),
        "unreadable": [_unread(each) for each in explanation.unreadable],
        "leftAlone": explanation.left_alone,
        "controller": _controller_document(explanation),
        "advice": list(advice(explanation)),
    }


def _orphan_document(explanation: Explanation) -> dict[str, Any] | None:
    found = explanation.orphan
    if found is None:
        return None
    return {
        "reason": str(found.cause),
        "message": found.message,
        "blockers": [{"reason": one.reason, "message": one.message} for one in found.blockers],
    }


def _controller_document(explanation: Explanation) -> dict[str, Any] | None:
    found = explanation.election
    if found is None:
        return None
    return {
        "state": str(found.state),
        "message": found.message,
        "degraded": bool(explanation.troubles),
        "troubles": [
            {"reason": str(one.sign), "reservation": one.reservation, "message": one.message}
            for one in explanation.troubles
        ],
    }


def _reservation(retention: Any) -> dict[str, Any]:
    from claimctl.wire.base import to_plain

    reservation = retention.held.reservation
    blocker = retention.blocker
    return {
        "name": reservation.metadata.name,
        "workloadRef": to_plain(reservation.spec.workload_ref),
        "retentionPolicy": reservation.spec.retention_policy,
        "stand": str(retention.action),
        "reason": str(blocker.reason if blocker else retention.reason),
        "message": blocker.message if blocker else "",
        "afterSeconds": blocker.after if blocker else None,
        "conditions": [
            {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            for one in reservation.status.conditions
        ],
    }


def lines(explanation: Explanation) -> list[str]:
    """The explanation as text."""
    from claimctl.text import counted, listed

    view = explanation.view
    consumers = view.consumers
    facts = [
        ("Claim", f"{view.namespace}/{view.name}"),
        ("State", view.state),
        ("Devices", ", ".join(view.devices) or "none"),
        ("Nodes", ", ".join(view.nodes) or "none"),
        ("Consumers", f"{len(consumers.bound)} bound, {len(consumers.pending)} pending"),
        ("Listed", f"{view.holders or 'nobody'} ({view.places} places taken)"),
    ]
    if ahead := view.listed_ahead:
        pods = counted(len(ahead), "pending pod")
        told = f"claimctl listed {pods} before the scheduler: {listed(ahead)}"
        facts.append(("Ahead", told))
    shown = [f"{title + ':':<12}{value}" for title, value in facts]
    return [
        *shown,
        *_holders(explanation),
        *_controller(explanation),
        *_unreadable_lines(explanation),
        *_verdict(explanation),
        *_orphan(explanation),
        *_advice(explanation),
    ]


def _holders(explanation: Explanation) -> list[str]:
    from claimctl.inspect.explain import describe_retention, owner_of

    found = [
        f"  {each.resource}/{each.name} is listed ({owner_of(explanation, each)})"
        for each in explanation.view.workloads
    ]
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        ref = reservation.spec.workload_ref
        what = f"{ref.kind} {ref.name}, {reservation.spec.retention_policy}"
        does = describe_retention(retention)
        found.append(f"  ClaimReservation {reservation.metadata.name} ({what}) {does}")
    asked = [f"  {line}" for line in explanation.asked]
    return ["Held by:", *(found or ["  no workload and no ClaimReservation"]), *asked]


_STATES = {"Acting": "acting", "NotActing": "not acting", "Unknown": "unknown"}


def _controller(explanation: Explanation) -> list[str]:
    found = explanation.election
    if found is None:
        return []
    state = "degraded" if explanation.troubles else _STATES[found.state]
    shown = [one.message for one in explanation.troubles if one.message != found.message]
    return [f"Controller: {state}; {found.message}", *(f"  {line}" for line in shown)]


def _unreadable_lines(explanation: Explanation) -> list[str]:
    if not explanation.unreadable:
        return []
    shown = [f"  {each}: {each.problem}" for each in explanation.unreadable]
    alone = [f"  {_LEFT_ALONE}"] if explanation.left_alone else []
    return ["Cannot be read:", *shown, *alone]


def _verdict(explanation: Explanation) -> list[str]:
    if explanation.view.claim.status.allocation is None:
        head = "Release:    nothing to release, it is not allocated"
    elif explanation.release is not None:
        head = f"Release:    in progress ({explanation.release})"
    elif not explanation.assessment.retentions:
        head = "Release:    not by claimctl: no ClaimReservation names the claim"
    elif explanation.releasable and explanation.troubles:
        head = "Release:    possible as soon as the controller acts again"
    else:
        head = f"Release:    {'possible' if explanation.releasable else 'not possible'} now"
    return [head, *map(_obstacle, explanation.obstacles)]


def _obstacle(blocker: Any) -> str:
    from claimctl.reservation.reasons import Reason

    left = ""
    if blocker.reason is Reason.PODS_MAY_BE_BOUND and blocker.after is not None:
        left = f" (for at most {blocker.after:.0f} s more)"
    return f"  {blocker.reason}: {blocker.message}{left}"


def _orphan(explanation: Explanation) -> list[str]:
    found = explanation.orphan
    if found is None:
        return []
    blockers = [f"  {one.reason}: {one.message}" for one in found.blockers]
    return [f"Orphan:     {found.message} ({found.cause})", *blockers]


def _advice(explanation: Explanation) -> list[str]:
    from claimctl.inspect.advice import advice

    return ["What to do:", *(f"  {line}" for line in advice(explanation))]
