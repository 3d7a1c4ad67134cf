"""``claimctl explain`` of claims: text, and documents for programs."""

from __future__ import annotations

from claimctl.commands.claims.advice import UNREADABLE, advice
from claimctl.commands.claims.explanation import Explanation, describe_retention, owner_of
from claimctl.commands.claims.waiting import controllers_word, release_wait
from claimctl.text import counted, fact, listed
from claimctl.wire.unreadable import Unreadable

_LEFT_ALONE = "The controller leaves the claim alone until that can be read."


def unread_lines(unread: Unreadable) -> list[str]:
    """What is known about a claim that cannot be read."""
    return [unread.describe(), _LEFT_ALONE, "What to do:", f"  {UNREADABLE}"]


def lines(explanation: Explanation) -> list[str]:
    """The explanation as text."""
    view = explanation.view
    consumers, orphan = view.consumers, explanation.orphan
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
        text = f"claimctl listed {pods} before the scheduler: {listed(ahead)}"
        facts.append(("Ahead", text))
    return [
        *(fact(title, value) for title, value in facts),
        *(f"  {note}" for note in explanation.devices),
        *_holders(explanation),
        *_controller(explanation),
        *_unreadable_lines(explanation),
        *_verdict(explanation),
        *([f"Orphan:     {orphan.message} ({orphan.cause})"] if orphan else []),
        *(f"  {it.reason}: {it.message}" for it in (orphan.blockers if orphan else ())),
        "What to do:",
        *(f"  {line}" for line in advice(explanation)),
    ]


def _holders(explanation: Explanation) -> list[str]:
    lines = [
        f"  {workload.resource}/{workload.name} is listed ({owner_of(explanation, workload)})"
        for workload in explanation.view.workloads
    ]
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        ref = reservation.spec.workload_ref
        what = f"{ref.kind} {ref.name}, {reservation.spec.retention_policy}"
        does = describe_retention(explanation, retention)
        lines.append(f"  ClaimReservation {reservation.metadata.name} ({what}) {does}")
    asked = [f"  {asker.line}" for asker in explanation.asking]
    return ["Held by:", *(lines or ["  no workload and no ClaimReservation"]), *asked]


_STATES = {"Acting": "acting", "NotActing": "not acting", "Unknown": "unknown"}


def _controller(explanation: Explanation) -> list[str]:
    election = explanation.election
    if election is None:
        return []
    state = "degraded" if explanation.troubles else _STATES[election.state]
    shown = [
        trouble.message for trouble in explanation.troubles if trouble.message != election.message
    ]
    return [f"Controller: {state}; {election.message}", *(f"  {line}" for line in shown)]


def _unreadable_lines(explanation: Explanation) -> list[str]:
    if not explanation.unreadable:
        return []
    shown = [f"  {unread}: {unread.problem}" for unread in explanation.unreadable]
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
    lines = [head]
    for blocker in explanation.obstacles:
        left = release_wait(explanation, blocker)
        lines.append(f"  {blocker.reason}: {blocker.message}{f' ({left})' if left else ''}")
    return [*lines, *(f"  {line}" for line in controllers_word(explanation))]
