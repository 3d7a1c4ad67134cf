"""What a user can do about a claim: one line for each matter, with the command to run."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.claims import controller_health
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.judgement import see_why, waiting_pods
from claimctl.commands.claims.meanings import MEANINGS, RELEASE_WAITS
from claimctl.commands.claims.pod_advice import WELL
from claimctl.commands.claims.release_waits import release_steps
from claimctl.reservation.assessment.retention import Action
from claimctl.reservation.facts.pods import is_stuck
from claimctl.reservation.facts.reasons import Reason, RetentionPolicy
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.kinds.rules import Rule, judge
from claimctl.reservation.kinds.shipped import shipped_rules

UNREADABLE = (
    "Correct or delete the object that cannot be read; if a newer version wrote it, upgrade "
    "claimctl."
)
SEE_WHETHER = (
    "claimctl makes it within 15 seconds, also after it was granted a right. If it does not, see "
    "whether it is installed and runs: claimctl doctor"
)
AS_FAR_AS_READ = "What you may read shows nothing wrong."
_REASONS = frozenset(Reason)
_SUSPENDED = ('{"spec":{"suspend":true}}', '{"spec":{"runPolicy":{"suspend":true}}}')
"""How users suspend the workloads of some kinds, as patches."""
_SCALED_TO_0 = '{"spec":{"replicas":0}}'


def advice(explanation: Explanation) -> tuple[str, ...]:
    """What an administrator can do: about the controller first, then about each problem.

    Without a problem it is "Nothing". How to free the devices is then said too. Beside a problem
    it is said in two cases only: the claim is idle and the problem is its workload's annotation,
    or its release has begun.
    """
    about_controller = controller_health.advice(explanation.troubles)
    matters = tuple(dict.fromkeys((*claim_steps(explanation), *_pod_that_waits(explanation))))
    if matters or (about_controller and explanation.assessment.retentions):
        # the devices may be free although an annotation is wrong
        wrong = any(asker.fix for asker in explanation.asking) and not explanation.troubles
        free = explanation.releasable and explanation.release is None and explanation.view.is_idle
        to_free = [f"To free its devices: {to_release(explanation)}"] if wrong and free else []
        return (*about_controller, *matters, *to_free)
    return (*about_controller, *_if_well(explanation))


def claim_steps(explanation: Explanation) -> Iterator[str]:
    """Advice about each problem of the claim, and about what it waits for."""
    view = explanation.view
    yield from (asker.fix for asker in explanation.asking if asker.fix)
    if explanation.unreadable or explanation.left_alone:
        yield UNREADABLE
    if explanation.orphan is not None:
        yield f"See what is to be done: claimctl doctor orphans -n {view.namespace}"
    elif any(not asker.fix for asker in explanation.asking):
        yield SEE_WHETHER
    yield from _of_missing_workloads(explanation)
    reasons = list(_reasons(explanation))
    known = [MEANINGS[reason] for reason in reasons if MEANINGS[reason].advice]
    yield from (meaning.advice for meaning in known if meaning.topic != RELEASE_WAITS)
    yield from explanation.steps
    if view.claim.status.allocation is None:
        return
    if explanation.release is not None:
        yield from _to_end_use(explanation, reasons)
        yield from release_steps(explanation)
        of_conditions = (reason for reason in reasons if reason not in _named(explanation))
        meanings = (MEANINGS[reason] for reason in of_conditions)
        yield from (it.advice for it in meanings if it.topic == RELEASE_WAITS and it.advice)
    for retention in explanation.assessment.retentions:
        if retention.held.workload.uid in explanation.uncreated and explanation.release is None:
            name = retention.held.reservation.spec.workload_ref.name
            stop = to_stop(view.namespace, retention.held)
            yield f"Let {name} create pods, or give its devices back: {stop[0].lower()}{stop[1:]}"
        ref, phase = retention.held.reservation.spec.workload_ref, retention.held.workload.phase
        kept = retention.blocker is not None and retention.blocker.reason is Reason.RETENTION
        if retention.action is Action.HOLD and kept and phase is WorkloadPhase.ABSENT:
            yield (
                f"{ref.kind} {ref.name} does not exist any more. If nobody needs the devices, "
                f"free them: {to_release(explanation)}"
            )


def _of_missing_workloads(explanation: Explanation) -> Iterator[str]:
    namespace = explanation.view.namespace
    for retention in explanation.assessment.retentions:
        if retention.reason is Reason.WORKLOAD_NOT_FOUND:
            made = retention.held.reservation
            ref = made.spec.workload_ref
            command = f"kubectl -n {namespace} get {ref.kind.lower()}"
            yield (
                f"{ref.kind} {namespace}/{ref.name} of ClaimReservation {made.metadata.name} does "
                f"not exist: create it, or reserve for one that exists: {command}"
            )


def _named(explanation: Explanation) -> frozenset[Reason]:
    """The blockers that this command has found itself."""
    return frozenset(blocker.reason for blocker in explanation.obstacles)


def _pod_that_waits(explanation: Explanation) -> Iterator[str]:
    """Where to look for why a pod does not run, also if it has just been made."""
    unallocated = explanation.view.claim.status.allocation is None
    pods = waiting_pods(explanation.view)
    if any(pod.spec.node_name or unallocated or is_stuck(pod) for pod in pods):
        yield see_why(explanation.view)


def _reasons(explanation: Explanation) -> Iterator[Reason]:
    yield from (blocker.reason for blocker in explanation.obstacles)
    for retention in explanation.assessment.retentions:
        yield retention.blocker.reason if retention.blocker else retention.reason
        conditions = retention.held.reservation.status.conditions
        yield from (
            Reason(condition.reason) for condition in conditions if condition.reason in _REASONS
        )


def _to_end_use(explanation: Explanation, reasons: list[Reason]) -> Iterator[str]:
    """How to end the pods that use the claim: at their workloads, else one by one."""
    if Reason.CONSUMERS_LEFT not in reasons and Reason.WORKLOAD_WANTS_PODS not in reasons:
        return
    namespace, active = explanation.view.namespace, False
    for retention in explanation.assessment.retentions:
        held = retention.held
        # a ClaimReservation that names itself makes no pods
        of_itself = held.workload.uid == held.reservation.metadata.uid
        if held.workload.phase is WorkloadPhase.ACTIVE and not of_itself:
            active = True
            yield to_stop(namespace, held)
    if not active:
        using = explanation.view.consumers
        everyone = (*using.bound.values(), *using.pending.values())
        pods = " ".join(sorted(pod.metadata.name for pod in everyone))
        if pods:
            yield f"Wait for its pods, or delete them: kubectl -n {namespace} delete pod {pods}"


def to_stop(namespace: str, held: Held) -> str:
    """How a user makes a workload want no pods."""
    ref = held.reservation.spec.workload_ref
    name = f"{held.served_as}.{ref.api_group}" if held.served_as else ref.kind.lower()
    name = f"{name}/{ref.name}"
    rule = held.workload.rule or shipped_rules().get((ref.api_group, ref.kind))
    for patch in _SUSPENDED:
        if _makes_idle(rule, patch):
            command = f"kubectl -n {namespace} patch {name} --type=merge -p '{patch}'"
            return f"Suspend the {ref.kind}, or delete it: {command}"
    if _makes_idle(rule, _SCALED_TO_0):
        command = f"kubectl -n {namespace} scale {name} --replicas=0"
        return f"Scale the {ref.kind} to 0, or delete it: {command}"
    command = f"kubectl -n {namespace} get {name}"
    return f"Stop the {ref.kind} by its own means, or delete it; this shows it: {command}"


def _makes_idle(rule: Rule | None, patch: str) -> bool:
    """Whether a workload of the kind is idle with what the patch sets, and is not without it."""
    if rule is None:
        return False
    return judge(rule, patch.encode()).idle is True and not judge(rule, b"{}").idle


def to_release(explanation: Explanation) -> str:
    return f"claimctl release {explanation.view.name} -n {explanation.view.namespace}"


def _if_well(explanation: Explanation) -> Iterator[str]:
    """The lines for a claim without a problem."""
    view = explanation.view
    if view.claim.status.allocation is None:
        yield "Nothing: the claim holds no device, and no pod waits for it."
    elif explanation.release is not None:
        yield "Nothing: its release is under way."
    elif explanation.assessment.retentions:
        yield AS_FAR_AS_READ if explanation.unknown else WELL
        if explanation.releasable:
            yield f"To free its devices: {to_release(explanation)}"
        else:
            ends = _to_end_use(explanation, list(_reasons(explanation)))
            yield from (f"To free its devices: {line[0].lower()}{line[1:]}" for line in ends)
            specs = [it.held.reservation.spec for it in explanation.assessment.retentions]
            at_once = (RetentionPolicy.WHILE_RUNNING, 0)
            if any((it.retention_policy, it.idle_timeout_seconds) != at_once for it in specs):
                yield f"Then free them at once: {to_release(explanation)}"
    elif view.workloads:
        yield (
            "No ClaimReservation names it: the writer of the workload's reference has to remove it."
        )
    elif view.listed_pods:
        yield "No workload holds it: the cluster frees its devices when the last pod is gone."
    else:
        command = f"kubectl -n {view.namespace} delete resourceclaim {view.name}"
        yield f"Nothing holds it. To free its devices, delete it: {command}"
