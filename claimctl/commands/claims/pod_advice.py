"""What to do about a pod that waits, by its reasons: one line for each, with the command. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from claimctl.commands.claims.matters import IN_VAIN, MatterKind
from claimctl.commands.claims.ordinals import TO_MAKE, TO_PUT_IN_FORCE, WITH_ORDINALS
from claimctl.commands.claims.pod_view import BINDING, PodFindings
from claimctl.commands.claims.release_waits import release_steps
from claimctl.reservation.facts.pods import TERMINAL_PHASES, is_unreported
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.coordination import PREPARE_FAILED
from claimctl.wire.pods import Pod

WELL = "Nothing is wrong."
"""Never below a Warning Event, or below what keeps pods from a claim."""
_MISSING_GROUP = {
    True: "Wait: an upgrade has taken the PodGroups away; the next step: claimctl upgrade status",
    False: "Create the PodGroup.",
    None: "Create the PodGroup, or run `claimctl upgrade status` if it was deleted for an upgrade.",
}
"""What to do about a missing PodGroup, by whether an upgrade is under way."""
_TRIES_AGAIN = "the kubelet tries again every 60 to 90 s"
_WORDS_OF_LOSS = ("is not allocatable", "allocatable not found", "could not find allocatable")
"""What drivers say of a device that they do not offer any more."""


def pod_advice(findings: PodFindings) -> tuple[str, ...]:
    """What is known to help, with the command to run."""
    return tuple(dict.fromkeys(_advice(findings)))


def next_steps(findings: PodFindings) -> tuple[str, ...]:
    """What to do: what helps, else where to look, else that nothing is wrong."""
    meta = findings.pod.metadata
    describe = f"kubectl -n {meta.namespace} describe pod {meta.name}"
    otherwise = WELL
    if findings.state == "Waiting" and not findings.rivals:
        otherwise = f"See the scheduler's words: {describe}"
    elif findings.reasons():
        otherwise = f"See what else is known: {describe}"
    return pod_advice(findings) or (otherwise,)


def _advice(findings: PodFindings) -> Iterator[str]:
    meta, node = findings.pod.metadata, findings.pod.spec.node_name
    delete = f"Delete the pod: kubectl -n {meta.namespace} delete pod {meta.name}"
    wait = "Wait a moment, and look again."
    known = {
        **dict.fromkeys(("StrandedPod", "PodGroupTakenAway"), delete),
        **dict.fromkeys(("NotScheduledYet", "Starting"), wait),
        "ClaimNotMade": _to_make_claim(findings, wait),
        Reason.STICKY_NOT_IN_FORCE: f"{TO_PUT_IN_FORCE} {delete}",
        Reason.INVALID_ANNOTATION: WITH_ORDINALS,
        **({"Starting": _see_the_kubelet(node)} if is_unreported(findings.pod) else {}),
        "PodGroupMissing": _MISSING_GROUP[findings.upgrade],
        "SharedClaimRace": wait,
        BINDING: "Look at the log of the driver, or of its controller: it has to report them.",
        "GangSharesClaim": "Let one pod start before the others, or upgrade the scheduler.",
        "ResizeInfeasible": f"Ask for a size that the node has: kubectl describe node {node}",
        **findings.words.advice,
    }
    if findings.state not in TERMINAL_PHASES:
        yield from (
            step
            for use in findings.uses
            if use.explanation
            for step in use.explanation.steps_for_pods
        )
    for reason, text in findings.reasons():
        if reason == "ClaimReleasing":
            yield from _about_releases(findings, wait)
        elif reason == "Warning":
            yield from _about_warning(text, findings.pod, findings.kinds)
        elif reason in known:
            yield known[reason]
    for use in findings.uses:
        waits = use.problem and use.claim and not use.unmade
        if waits and findings.state not in TERMINAL_PHASES:
            yield to_create(meta.namespace, use.claim)
    yield from _about_rivals(findings)


def _to_make_claim(findings: PodFindings, wait: str) -> str:
    """What to do about a claim that somebody is to make for the pod."""
    if any(use.unmade for use in findings.uses):
        return TO_MAKE
    if findings.refused_claims:
        there_are = f"kubectl -n {findings.pod.metadata.namespace} get resourceclaimtemplates"
        return f"Correct what the Event says above; the templates that there are: {there_are}"
    return wait


def _see_the_kubelet(node: str) -> str:
    look = f"see whether its kubelet works: kubectl describe node {node}"
    return f"Wait a moment, and look again; if node {node} still says nothing, {look}"


def _about_releases(findings: PodFindings, wait: str) -> Iterator[str]:
    """What the releases of its claims wait for; a release that nothing blocks takes a moment."""
    explained = (use.explanation for use in findings.uses if use.explanation is not None)
    known = [step for claim in explained if claim.release for step in release_steps(claim)]
    yield from known or (wait,)


def _about_rivals(findings: PodFindings) -> Iterator[str]:
    if findings.kinds & IN_VAIN:
        return
    idle = [rival for rival in findings.rivals if rival.idle]
    for rival in idle:
        command = f"claimctl release {rival.name} -n {rival.namespace}"
        if rival.shortfall is None:
            yield f"Free devices that are held idle: {command}"
        else:
            what = f"Claim {rival.namespace}/{rival.name} is held idle"
            yield f"{what}, but its release may not help: {rival.shortfall}"
    for busy in findings.rivals[: 0 if idle else 1]:
        where = f"{busy.name} -n {busy.namespace}"
        yield f"See what would free a claim in use: claimctl explain {where}"


def _about_warning(note: str, pod: Pod, known: frozenset[MatterKind]) -> Iterator[str]:
    """What to do about a Warning Event of a pod that does not start, beside what is known."""
    place, name, node = pod.metadata.namespace, pod.metadata.name, pod.spec.node_name
    if absent := re.search(r"DRA driver (\S+) is not registered", note):
        yield f"Start driver {absent[1]} on node {node}; {_TRIES_AGAIN}."
    elif "one pod per claim" in note:
        text = f"claimctl takes the hold out of the claim's list; {_TRIES_AGAIN}."
        yield f"Wait: {text} The controller's --one-pod-driver DRIVER spares the next pods this."
    elif any(words in note for words in _WORDS_OF_LOSS):
        if MatterKind.DEVICE_GONE not in known:
            delete = f"kubectl -n {place} delete pod {name}"
            yield f"The device is gone. Delete the pod, so that the next gets another: {delete}"
    elif "already bound to pod" in note:
        yield "Its driver gives the claim to one pod at a time: let the other pod end first."
    elif note.startswith(PREPARE_FAILED):
        yield f"Correct what the driver says above; {_TRIES_AGAIN}."
    else:
        describe = f"kubectl -n {place} describe pod {name}"
        yield f"Correct what the Event says above; see more: {describe}"


def to_create(namespace: str, claim: str) -> str:
    """What to do about a claim that pods name and that does not exist."""
    there_are = f"kubectl -n {namespace} get resourceclaims"
    return f"Create claim {claim} in namespace {namespace}, or name one that exists: {there_are}"
