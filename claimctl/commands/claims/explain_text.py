"""``claimctl explain`` as text: of claims, with until when a release waits by whose clock, and of
pods and workloads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from claimctl.commands.claims.advice import UNREADABLE, advice, workload_advice
from claimctl.commands.claims.explanation import Explanation, describe_retention, rule_lines
from claimctl.commands.claims.pod_explanation import WorkloadFindings
from claimctl.commands.claims.pod_view import WELL, PodFindings
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import ConditionType, Reason, ReleaseStep
from claimctl.reservation.facts.references import is_pod_group
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.text import counted, duration, fact, listed
from claimctl.wire.meta import find_condition
from claimctl.wire.unreadable import Unreadable

MOST_RIVALS = 10
_LEFT_ALONE = "The controller leaves the claim alone until that can be read."


def unread_lines(unread: Unreadable) -> list[str]:
    """What is known about a claim that cannot be read."""
    return [unread.describe(), _LEFT_ALONE, "What to do:", f"  {UNREADABLE}"]


def claim_lines(explanation: Explanation) -> list[str]:
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
    if view.frozen_for:
        text = f"frozen for the {view.frozen_for}: its devices are lost when its last pod ends"
        facts.append(("Not held", text))
    if ahead := view.listed_ahead:
        pods = counted(len(ahead), "pending pod")
        text = f"claimctl listed {pods} before the scheduler: {listed(ahead)}"
        facts.append(("Ahead", text))
    return [
        *(fact(title, value) for title, value in facts),
        *(f"  {note}" for note in explanation.notes),
        *_holders(explanation),
        *_controller(explanation),
        *(["Cannot be read:"] if explanation.unreadable else []),
        *(f"  {unread}: {unread.problem}" for unread in explanation.unreadable),
        *([f"  {_LEFT_ALONE}"] if explanation.left_alone else []),
        *_verdict(explanation),
        *([f"Orphan:     {orphan.message} ({orphan.cause})"] if orphan else []),
        *(f"  {it.reason}: {it.message}" for it in (orphan.blockers if orphan else ())),
        "What to do:",
        *(f"  {line}" for line in advice(explanation)),
    ]


def _holders(explanation: Explanation) -> list[str]:
    lines = []
    for entry in explanation.view.workloads:
        whose = "for its pods" if is_pod_group(entry) else "not claimctl's"
        if entry.uid in explanation.assessment.own:
            whose = "claimctl's"
        lines.append(f"  {entry.resource}/{entry.name} is listed ({whose})")
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        ref = reservation.spec.workload_ref
        what = f"{ref.kind} {ref.name}, {reservation.spec.retention_policy}"
        does = describe_retention(explanation, retention)
        lines.append(f"  ClaimReservation {reservation.metadata.name} ({what}) {does}")
        workload = retention.held.workload
        if line := explanation.uncreated.get(workload.uid):
            lines.append(f"    {line}")
        if workload.rule is not None:
            by = workload.rule.origin
            lines.append(f"    {ref.kind} {ref.name} is {workload.phase} by {by}")
            lines.extend(f"    {line}" for line in rule_lines(workload))
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


def until(explanation: Explanation, blocker: Blocker) -> datetime | None:
    """When time will have ended the blocker, by the clock of the controller that wrote the status.

    None if no status has a time. Then the controller counts from what it saw first, and that is
    not known.
    """
    releases = (reservation.status.release for reservation in explanation.view.reservations)
    fenced = any(release is not None and release.step == ReleaseStep.FENCED for release in releases)
    on_record = blocker.reason is Reason.FORCE_DELETED_PODS or (
        blocker.reason is Reason.PODS_MAY_BE_BOUND and fenced
    )
    if blocker.after is None or not on_record:
        return None
    return explanation.assessment.snapshot.now + timedelta(seconds=blocker.after)


def release_wait(explanation: Explanation, blocker: Blocker) -> str:
    """Until when the release waits, as text; '' if time does not end the blocker."""
    if blocker.after is None:
        return ""
    if (end := until(explanation, blocker)) is not None:
        bound = blocker.reason is Reason.PODS_MAY_BE_BOUND
        anew = ", and later if a controller has started since" if bound else ""
        left = f"{duration(blocker.after)} left"
        return f"until {end:%Y-%m-%dT%H:%M:%SZ} by the controller's clock, {left}{anew}"
    if blocker.reason is Reason.PODS_MAY_BE_BOUND:
        return (
            f"at most {blocker.after:.0f} s from the controller's first sight of the claim closed "
            "to them, by its own clock; explain cannot know when that was"
        )
    return ""


def controllers_word(explanation: Explanation) -> Iterator[str]:
    """What the controller itself reports about a release that waits.

    It may wait for what no object shows: for pods that may have vanished while it did not watch.
    """
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        said = find_condition(reservation.status.conditions, ConditionType.RELEASED)
        if explanation.release is None or said is None or said.status != "False":
            continue
        if said.reason != Reason.HELD:
            where = f"the controller reports in ClaimReservation {reservation.metadata.name}"
            yield f"{where} ({said.reason}): {said.message}"


def pod_lines(findings: PodFindings) -> list[str]:
    meta = findings.pod.metadata
    node = findings.pod.spec.node_name
    state = f"{findings.state}{f' on {node}' if node else ''}"
    # without the ReplicaSet that a Deployment has made
    owners = [it for it in findings.owners[:-1] if not it.startswith("replicaset/")]
    owner = f", of {' of '.join((*owners, findings.owners[-1]))}" if findings.owners else ""
    uses = [_claim(use.explanation) if use.explanation else use.problem for use in findings.uses]
    nothing = WELL
    if findings.state == "Waiting" and not findings.rivals:
        nothing = f"See the scheduler's words: kubectl -n {meta.namespace} describe pod {meta.name}"
    elif findings.reasons():
        nothing = f"See what else is known: kubectl -n {meta.namespace} describe pod {meta.name}"
    return [
        fact("Pod", f"{meta.namespace}/{meta.name}{owner}"),
        fact("State", state),
        *(f"  {reason}: {message}" for reason, message in findings.reasons()),
        "Claims:",
        *(f"  {use}" for use in uses or ["it names no claim"]),
        *_rivals(findings),
        "What to do:",
        *(f"  {line}" for line in findings.advice() or (nothing,)),
    ]


def _claim(explanation: Explanation) -> str:
    view = explanation.view
    devices = ", ".join(view.devices) or "no devices"
    holders = view.holders or "nobody"
    return f"{view.name}: {view.shown_state}, {devices}, listed: {holders} ({view.places})"


def _obstructions(explanation: Explanation) -> Iterator[str]:
    notes = (*explanation.obstructions, *explanation.unknown, *explanation.uncreated.values())
    yield from (f"  {line}" for line in notes)


def _rivals(findings: PodFindings) -> Iterator[str]:
    if not findings.rivals:
        return
    yield "Devices of the same classes are with:"
    for rival in findings.rivals[:MOST_RIVALS]:
        idle = ", idle" if rival.idle else ""
        what = f"{', '.join(rival.devices)}, {rival.holders or 'nobody'}{idle}"
        yield f"  claim {rival.namespace}/{rival.name}: {what}"
    if len(findings.rivals) > MOST_RIVALS:
        yield f"  and {len(findings.rivals) - MOST_RIVALS} more claims"


def workload_lines(findings: WorkloadFindings) -> list[str]:
    pods = findings.consumers
    wants = "it has ended" if findings.state.ended else counted(findings.state.wants, "pod")
    rule = findings.state.rule
    if rule and not findings.state.wants and findings.state.phase == WorkloadPhase.ACTIVE:
        wants = "pods, and its rule does not say how many"
    starting = sum(pod.status.phase == "Pending" for pod in pods.bound.values())
    there = [
        f"{len(pods.bound) - starting} running",
        *([f"{starting} starting"] if starting else []),
        f"{len(pods.pending)} waiting for a node",
    ]
    return [
        fact(findings.ref.kind, f"{findings.namespace}/{findings.ref.name}"),
        fact("Wants", f"{wants}; {', '.join(there)}"),
        *([fact("Rule", f"{findings.state.phase}, by {rule.origin}")] if rule else []),
        *(f"  {line}" for line in rule_lines(findings.state)),
        "Held for it:",
        *(f"  {line}" for line in _reservation_lines(findings)),
        "Claims:",
        *(
            f"  {line}"
            for claim in findings.claims
            for line in (_claim(claim), *_obstructions(claim))
        ),
        *(["  its pods name no existing claim"] if not findings.claims else []),
        *([f"  and {findings.more_claims} more claims"] if findings.more_claims else []),
        *(f"  claim {name} does not exist" for name in findings.missing),
        *_waiting(findings),
        "What to do:",
        *(f"  {line}" for line in workload_advice(findings)),
    ]


def _reservation_lines(findings: WorkloadFindings) -> Iterator[str]:
    named = {reservation.metadata.name for reservation in findings.reservations}
    shown = False
    for explanation in findings.claims:
        for retention in explanation.assessment.retentions:
            name = retention.held.reservation.metadata.name
            if name in named:
                shown = True
                policy = retention.held.reservation.spec.retention_policy
                does = describe_retention(explanation, retention)
                yield f"claim {explanation.view.name} by ClaimReservation {name} ({policy}): {does}"
    yield from (problem.note for problem in findings.problems)
    if findings.above:
        yield findings.above
    if findings.above and not findings.counts:
        return
    if not shown and not findings.problems and findings.annotation is not None:
        asks = f"claimctl.io/reserve: {findings.annotation!r}"
        yield f"{asks} asks for a hold, and there is no ClaimReservation yet"
    elif not shown and not findings.problems:
        yield "nothing: it has no annotation claimctl.io/reserve, and no ClaimReservation names it"


def _waiting(findings: WorkloadFindings) -> Iterator[str]:
    if not findings.waiting:
        return
    yield "Pods that do not run:"
    for pod in findings.waiting:
        reasons = "; ".join(f"{reason}: {text}" for reason, text in pod.reasons())
        yield f"  {pod.pod.metadata.name}: {reasons or pod.state}"
    if any(pod.rivals for pod in findings.waiting):
        yield from _rivals(max(findings.waiting, key=lambda pod: len(pod.rivals)))
