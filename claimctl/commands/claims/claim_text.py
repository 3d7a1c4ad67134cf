"""``claimctl explain`` of claims: text, and documents for programs."""

from __future__ import annotations

from claimctl.commands.claims.advice import UNREADABLE, advice
from claimctl.commands.claims.explanation import Explanation, describe_retention, owner_of
from claimctl.commands.claims.waiting import controllers_word, told
from claimctl.reservation.facts.decision import Blocker
from claimctl.text import counted, fact, listed
from claimctl.wire.unreadable import Unreadable

_API = "cli.claimctl.io/v1alpha1"
_LEFT_ALONE = "The controller leaves the claim alone until that can be read."


def unread_lines(found: Unreadable) -> list[str]:
    """What is known about a claim that cannot be read."""

    return [found.describe(), _LEFT_ALONE, "What to do:", f"  {UNREADABLE}"]


def lines(explanation: Explanation) -> list[str]:
    """The explanation as text."""

    view = explanation.view
    consumers = view.consumers
    facts = [
        ("Claim", f"{view.namespace}/{view.name}"),
        ("State", view.shown_state),
        ("Devices", ", ".join(view.devices) or "none"),
        ("Nodes", ", ".join(view.nodes) or "none"),
        ("Consumers", f"{len(consumers.bound)} bound, {len(consumers.pending)} pending"),
        ("Listed", f"{view.holders or 'nobody'} ({view.places} places taken)"),
    ]
    if ahead := view.listed_ahead:
        pods = counted(len(ahead), "pending pod")
        told = f"claimctl listed {pods} before the scheduler: {listed(ahead)}"
        facts.append(("Ahead", told))
    return [
        *(fact(title, value) for title, value in facts),
        *(f"  {note}" for note in explanation.devices),
        *_holders(explanation),
        *_controller(explanation),
        *_unreadable_lines(explanation),
        *_verdict(explanation),
        *_orphan(explanation),
        *_advice(explanation),
    ]


def _holders(explanation: Explanation) -> list[str]:

    found = [
        f"  {each.resource}/{each.name} is listed ({owner_of(explanation, each)})"
        for each in explanation.view.workloads
    ]
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        ref = reservation.spec.workload_ref
        what = f"{ref.kind} {ref.name}, {reservation.spec.retention_policy}"
        does = describe_retention(explanation, retention)
        found.append(f"  ClaimReservation {reservation.metadata.name} ({what}) {does}")
    asked = [f"  {one.line}" for one in explanation.asking]
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
        return ["Release:    nothing to release, it is not allocated"]
    if explanation.release is not None:
        head = f"Release:    in progress ({explanation.release})"
    elif not explanation.assessment.retentions:
        head = "Release:    not by claimctl: no ClaimReservation names the claim"
    elif explanation.releasable and explanation.troubles:
        head = "Release:    possible as soon as the controller acts again"
    else:
        head = "Release:    possible now"
        if explanation.left_alone:
            head = "Release:    not possible now"
        elif not explanation.releasable:
            head = "Release:    not asked for; this would have to end first:"
    said = [f"  {line}" for line in controllers_word(explanation)]
    return [head, *(_obstacle(explanation, one) for one in explanation.obstacles), *said]


def _obstacle(explanation: Explanation, blocker: Blocker) -> str:

    left = told(explanation, blocker)
    return f"  {blocker.reason}: {blocker.message}{f' ({left})' if left else ''}"


def _orphan(explanation: Explanation) -> list[str]:
    found = explanation.orphan
    if found is None:
        return []
    blockers = [f"  {one.reason}: {one.message}" for one in found.blockers]
    return [f"Orphan:     {found.message} ({found.cause})", *blockers]


def _advice(explanation: Explanation) -> list[str]:

    return ["What to do:", *(f"  {line}" for line in advice(explanation))]
