"""``claimctl explain`` as text. It is printed from the documents alone, so that it says what
``-o json`` says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.commands.claims.claim_document import (
    ClaimExplanation,
    ReleaseState,
    ReservationDecision,
)
from claimctl.commands.claims.claim_list import ClaimSummary
from claimctl.commands.claims.pod_document import ExplainedPod, ShortClaim, UsedClaim
from claimctl.commands.claims.release_waits import words_of_wait
from claimctl.commands.claims.rule_answers import RuleExpression
from claimctl.commands.claims.workload_document import WorkloadExplanation
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.text import counted, fact, listed

MOST_RIVALS = 10
_LEFT_ALONE = "The controller leaves the claim alone until that can be read."


def claim_lines(shown: ClaimExplanation) -> list[str]:
    """The explanation of a claim; of one that cannot be read, what is known."""
    claim, orphan = shown.claim, shown.orphan
    to_do = ["What to do:", *(f"  {line}" for line in shown.advice)]
    if claim is None:
        unread = (f"{it.object} cannot be read: {it.message}" for it in shown.unreadable)
        return [*unread, _LEFT_ALONE, *to_do]
    return [
        *_facts(claim, shown.listed_ahead),
        *(f"  {note}" for note in shown.device_notes),
        *_holders(shown),
        *_controller(shown),
        *(["Cannot be read:"] if shown.unreadable else []),
        *(f"  {it.object}: {it.message}" for it in shown.unreadable),
        *([f"  {_LEFT_ALONE}"] if shown.left_alone else []),
        *_release(shown),
        *([f"Orphan:     {orphan.message} ({orphan.cause})"] if orphan else []),
        *(f"  {it.reason}: {it.message}" for it in (orphan.blockers if orphan else ())),
        *to_do,
    ]


def _facts(claim: ClaimSummary, ahead: tuple[str, ...]) -> Iterator[str]:
    listing, using = claim.references, claim.consumers
    holders = [f"{it.resource}/{it.name}" for it in listing.workloads]
    holders += [counted(listing.pods, "pod")] if listing.pods else []
    places = listing.pods + listing.finished_pods + len(listing.workloads)
    asked = " (release asked)" if claim.release_asked else ""
    yield fact("Claim", f"{claim.namespace}/{claim.name}")
    yield fact("State", f"{claim.state}{asked}")
    yield fact("Devices", ", ".join(claim.devices) or "none")
    yield fact("Classes", ", ".join(claim.classes) or "none")
    yield fact("Nodes", ", ".join(claim.nodes) or "none")
    if claim.allocated_since is not None:
        yield fact("Allocated", f"since {claim.allocated_since}{_use(claim)}")
    yield fact("Consumers", f"{using.bound} bound, {using.pending} pending")
    taken = f"{places}/{listing.limit} places taken"
    yield fact("Listed", f"{', '.join(holders) or 'nobody'} ({taken})")
    if ahead:
        pods = counted(len(ahead), "pending pod")
        yield fact("Ahead", f"claimctl listed {pods} before the scheduler: {listed(ahead)}")


def _use(claim: ClaimSummary) -> str:
    """Since when pods use the devices, or since when none does."""
    if claim.used_since is not None:
        return f"; in use since {claim.used_since}"
    return f"; idle since {claim.unused_since}" if claim.unused_since is not None else ""


def _holders(shown: ClaimExplanation) -> list[str]:
    lines = [
        f"  {entry.resource}/{entry.name} is listed ({entry.whose})"
        for entry in shown.listed_workloads
    ]
    for made in shown.reservations:
        ref = made.workload_ref
        what = f"{ref.kind} {ref.name}, {made.retention_policy}"
        lines.append(f"  ClaimReservation {made.name} ({what}) {made.effect}")
        if made.ordinal_fate:
            lines.append(f"    {made.ordinal_fate}")
        if made.rule:
            lines.append(f"    {ref.kind} {ref.name} is {made.phase} by {made.rule}")
            lines.extend(f"    {line}" for line in _rule_lines(made.expressions))
    lines.extend(f"    {line}" for line in shown.uncreated)
    asked = [f"  {line}" for line in shown.asked]
    return ["Held by:", *(lines or ["  no workload and no ClaimReservation"]), *asked]


def _rule_lines(expressions: Iterable[RuleExpression]) -> Iterator[str]:
    """The expressions that decided about a workload that only a rule describes."""
    for answer in expressions:
        kind = answer.workload_kind
        whose = f"WorkloadKind {kind}" if kind else "the default rule"
        says = {True: "yes", False: "no", None: "nothing"}[answer.says]
        says += ", because the status is behind the spec" if answer.behind else ""
        yield f"rule: {answer.field} of {whose} says {says}: {' '.join(answer.expression.split())}"


_STATES = {"Acting": "acting", "NotActing": "not acting", "Unknown": "unknown"}


def _controller(shown: ClaimExplanation) -> list[str]:
    signs = shown.controller
    if signs is None:
        return []
    state = "degraded" if signs.degraded else _STATES[signs.state]
    more = [it.message for it in signs.troubles if it.message != signs.message]
    return [f"Controller: {state}; {signs.message}", *(f"  {line}" for line in more)]


def _release(shown: ClaimExplanation) -> list[str]:
    claim, release = shown.claim, shown.release
    if claim is None or release is None or not claim.allocated:
        return ["Release:    nothing to release, it is not allocated"]
    lines = [f"Release:    {_prospect(shown, release)}"]
    for blocker in release.blockers:
        end, since = blocker.until, release.watched_since
        left = words_of_wait(blocker.reason, blocker.after, end, since)
        lines.append(f"  {blocker.reason}: {blocker.message}{f' ({left})' if left else ''}")
    if release.under_way is not None:
        lines.extend(f"  {line}" for made in shown.reservations for line in _reported(made))
    return lines


def _prospect(shown: ClaimExplanation, release: ReleaseState) -> str:
    if release.under_way is not None:
        return f"in progress ({release.under_way})"
    if not shown.reservations:
        return "not by claimctl: no ClaimReservation names the claim"
    if release.possible and shown.controller is not None and shown.controller.degraded:
        return "possible as soon as the controller acts again"
    if release.possible:
        return "possible now"
    if shown.left_alone:
        return "not possible now"
    return "not asked for; this would have to end first:"


def _reported(made: ReservationDecision) -> Iterator[str]:
    """What the controller itself reports about a release that waits.

    It may wait for what no object shows: for pods that may have vanished while it did not watch.
    """
    for said in made.conditions:
        waits = said.type == ConditionType.RELEASED and said.status == "False"
        if waits and said.reason != Reason.HELD:
            where = f"the controller reports in ClaimReservation {made.name}"
            yield f"{where} ({said.reason}): {said.message}"


def pod_lines(pod: ExplainedPod) -> list[str]:
    """The explanation of a pod."""
    # without the ReplicaSet that a Deployment has made
    owners = [it for it in pod.owners[:-1] if not it.startswith("replicaset/")]
    owner = f", of {' of '.join((*owners, pod.owners[-1]))}" if pod.owners else ""
    where = f" on {pod.node}" if pod.node else ""
    since = f" since {pod.since}" if pod.since is not None else ""
    uses = [_claim(use) if use.problem is None else use.problem for use in pod.claims]
    return [
        fact("Pod", f"{pod.namespace}/{pod.name}{owner}"),
        fact("State", f"{pod.state}{where}{since}"),
        *(f"  {it.reason}: {it.message}" for it in pod.reasons),
        "Claims:",
        *(f"  {use}" for use in uses or ["it names no claim"]),
        *_rivals(pod),
        "What to do:",
        *(f"  {line}" for line in pod.advice),
    ]


def _claim(claim: ShortClaim | UsedClaim) -> str:
    devices = ", ".join(claim.devices) or "no devices"
    holders = claim.holders or "nobody"
    return f"{claim.name}: {claim.state}, {devices}, listed: {holders} ({claim.entries}/{LIMIT})"


def _rivals(pod: ExplainedPod) -> Iterator[str]:
    if not pod.rivals:
        return
    yield "Devices of the same classes are with:"
    for rival in pod.rivals[:MOST_RIVALS]:
        idle = ", idle" if rival.idle else ""
        what = f"{', '.join(rival.devices)}, {rival.holders or 'nobody'}{idle}"
        yield f"  claim {rival.namespace}/{rival.name}: {what}"
    if len(pod.rivals) > MOST_RIVALS:
        yield f"  and {len(pod.rivals) - MOST_RIVALS} more claims"


def workload_lines(shown: WorkloadExplanation) -> list[str]:
    """The explanation of a workload."""
    claims = (line for it in shown.claims for line in (_claim(it), *(f"  {n}" for n in it.notes)))
    return [
        fact(shown.workload_ref.kind, f"{shown.namespace}/{shown.workload_ref.name}"),
        fact("Wants", f"{_wanted(shown)}; {_there(shown)}"),
        *([fact("Rule", f"{shown.phase}, by {shown.rule}")] if shown.rule else []),
        *(f"  {line}" for line in _rule_lines(shown.expressions)),
        "Held for it:",
        *(f"  {line}" for line in _held_for(shown)),
        "Claims:",
        *(f"  {line}" for line in claims),
        *(["  its pods name no existing claim"] if not shown.claims else []),
        *([f"  and {shown.more_claims} more claims"] if shown.more_claims else []),
        *(f"  claim {name} does not exist" for name in shown.missing_claims),
        *_waiting(shown),
        "What to do:",
        *(f"  {line}" for line in shown.advice),
    ]


def _wanted(shown: WorkloadExplanation) -> str:
    if shown.rule and not shown.wants and shown.phase == WorkloadPhase.ACTIVE:
        return "pods, and its rule does not say how many"
    return "it has ended" if shown.ended else counted(shown.wants, "pod")


def _there(shown: WorkloadExplanation) -> str:
    pods = [
        f"{shown.pods.bound - shown.starting} running",
        *([f"{shown.starting} starting"] if shown.starting else []),
        f"{shown.pods.pending} waiting for a node",
    ]
    return ", ".join(pods)


def _held_for(shown: WorkloadExplanation) -> Iterator[str]:
    for hold in shown.holds:
        by = f"ClaimReservation {hold.reservation} ({hold.retention_policy})"
        yield f"claim {hold.claim} by {by}: {hold.effect}"
    if shown.outdated_ordinals:
        ordinals = listed(map(str, shown.outdated_ordinals))
        yield f"ordinals whose claim the pod template does not ask for now: {ordinals}"
    yield from (problem.message for problem in shown.problems)
    if shown.above:
        yield shown.above
    if shown.reservations and not shown.holds:
        names = listed(shown.reservations)
        yield f"nothing yet: the claim of ClaimReservation {names} is not there, or cannot be read"
        return
    if shown.holds or shown.problems or (shown.above and not shown.annotation_counts):
        return
    if shown.sticky is not None:
        asks = f"its pod template asks for sticky claims (claimctl.io/sticky: {shown.sticky!r})"
        yield f"{asks}, and there is no ClaimReservation yet"
    elif shown.annotation is not None:
        asks = f"claimctl.io/reserve: {shown.annotation!r}"
        yield f"{asks} asks for a hold, and there is no ClaimReservation yet"
    else:
        yield "nothing: it has no annotation claimctl.io/reserve, and no ClaimReservation names it"


def _waiting(shown: WorkloadExplanation) -> Iterator[str]:
    if not shown.waiting:
        return
    yield "Pods that do not run:"
    for pod in shown.waiting:
        reasons = "; ".join(f"{it.reason}: {it.message}" for it in pod.reasons)
        yield f"  {pod.name}: {reasons or pod.state}"
    yield from _rivals(max(shown.waiting, key=lambda pod: len(pod.rivals)))
