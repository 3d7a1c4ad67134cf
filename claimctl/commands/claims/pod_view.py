"""Why a pod waits, and who has its devices, as ``claimctl explain pod/NAME`` says it. Pure.

``PodFindings.reasons`` has the reasons by the state of the pod. A new reason is yielded by the
function of its state, such as ``_waiting``; ``pod_advice`` says what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from claimctl.cli.documents import Names, Part, says
from claimctl.cli.extensions import PodWords
from claimctl.commands.claims.device_notes import binding_waits
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.matters import MatterKind
from claimctl.commands.claims.ordinals import WITHOUT_POLICY, not_in_force
from claimctl.commands.claims.release_waits import waits_for
from claimctl.reservation.facts.pods import TERMINAL_PHASES, is_bound, is_unreported
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_pod
from claimctl.text import counted
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.traces import WholePod

BINDING = "BindingConditionsMissing"
"""The reason of a pod whose drivers have not reported what a scheduler waits for."""
CLAIM_REFUSED = "FailedResourceClaimCreation"
"""The reason of an Event about a pod for which no claim can be made from a template."""
_RACE = "got allocated elsewhere in the meantime"
_BLOCKED = "is in the process of being allocated"
"""What kube-scheduler says of pods of a group that are in each other's way."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """One entry of a pod's ``spec.resourceClaims``.

    Attributes:
        claim: the claim's name; '' if it is not made yet.
        explanation: the claim; None if it does not exist or cannot be read.
        problem: why there is no explanation.
        unmade: whether it is a sticky claim that claimctl is to make.
    """

    entry: str
    claim: str = ""
    template: str = ""
    explanation: Explanation | None = None
    problem: str = ""
    unmade: bool = False

    @property
    def is_generated(self) -> bool:
        """Whether kube-controller-manager is to make the claim."""
        return bool(self.template) and not self.claim


class RivalClaim(Part, frozen=True, kw_only=False):
    """Another claim that has devices of the classes that the pod waits for."""

    namespace: str
    name: str
    devices: Names
    holders: str
    idle: bool
    """Whether claimctl holds the claim, and no pod uses it."""
    shortfall: Annotated[
        str | None, says("why its devices are too few for the pod; null if they may be enough")
    ] = None


@dataclass(frozen=True, slots=True)
class PodFindings:
    pod: Pod
    uses: tuple[ClaimUse, ...]
    rivals: tuple[RivalClaim, ...] = ()
    warnings: tuple[str, ...] = ()
    """Notes of Warning events about the pod, the latest last."""
    owners: tuple[str, ...] = ()
    """The controllers of the pod as kind/name, the nearest first. The last one is its workload."""
    group_gone: bool = False
    """Whether the pod's PodGroup does not exist."""
    upgrade: bool | None = None
    """Whether ``claimctl upgrade prepare`` keeps PodGroups away; None if that is not known."""
    words: PodWords = field(default_factory=PodWords)
    """What extensions of claimctl say of the pod."""

    @property
    def listed(self) -> bool:
        """Whether all claims of the pod list the pod itself."""
        claims = [use.explanation.view.claim for use in self.uses if use.explanation is not None]
        lists = [{entry.uid for entry in claim.status.reserved_for} for claim in claims]
        return all(self.pod.metadata.uid in uids for uids in lists)

    @property
    def state(self) -> str:
        """Running, Waiting (for a node), Starting (it has a node), Ending, Succeeded or Failed."""
        pod = self.pod
        if pod.status.phase in TERMINAL_PHASES:
            return pod.status.phase
        if pod.metadata.deleting:
            return "Ending"
        if not is_bound(pod):
            return "Waiting"
        return "Running" if pod.status.phase == "Running" else "Starting"

    @property
    def since(self) -> datetime | None:
        """Since when a pod that does not run has waited."""
        waits = self.state in ("Waiting", "Starting")
        return self.pod.metadata.creation_timestamp if waits else None

    @property
    def kinds(self) -> frozenset[MatterKind]:
        """What is wrong with the claims of the pod."""
        explained = (use.explanation for use in self.uses if use.explanation is not None)
        return frozenset(it.kind for claim in explained for it in claim.matters)

    @property
    def may_lack_devices(self) -> bool:
        """Whether more free devices may help a pod that waits for a node. kube-scheduler names what
        is wrong with each node; the words of other schedulers are not known."""
        scheduled = find_condition(self.pod.status.conditions, "PodScheduled")
        says = scheduled.message if scheduled is not None else ""
        return "nodes are available" not in says or "cannot allocate all claims" in says

    @property
    def refused_claims(self) -> tuple[str, ...]:
        """Why kube-controller-manager could not make claims for the pod, the latest last."""
        refused = f"{CLAIM_REFUSED}: "
        notes = (note for note in self.warnings if note.startswith(refused))
        return tuple(note.removeprefix(refused) for note in notes)

    @property
    def binding_waits(self) -> tuple[tuple[str, str], ...]:
        """The claims whose drivers have not reported what the scheduler waits for, with a note."""
        known = ((use.claim, use.explanation) for use in self.uses if use.explanation is not None)
        return tuple((name, note) for name, it in known for note in binding_waits(it.view.claim))

    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Why the pod does not run, or not with the size that it wants: (reason, message), the
        likely cause first."""
        match self.state:
            case "Waiting":
                return (*_matters(self), *_generated(self.pod), *_waiting(self))
            case "Starting":
                return (*_matters(self), *_starting(self))
            case "Ending":
                return tuple(_matters(self))
            case "Running":
                sticky = _generated(self.pod)
                lost = taken_away(self.pod, gone=self.group_gone, listed=self.listed)
                return (*lost, *_matters(self), *sticky, *_resizing(self))
            case "Failed":
                return tuple(_refusal(self))
        return ()


def _matters(findings: PodFindings) -> Iterator[tuple[str, str]]:
    """What is wrong with the claims of the pod."""
    for use in findings.uses:
        for matter in use.explanation.matters if use.explanation is not None else ():
            if matter.kind is MatterKind.PODS_WAIT:
                continue
            where = f"claim {use.claim} keeps the pod there; " if matter.is_of_node else ""
            about = matter.about or f"claim {use.claim}"
            yield matter.reason, f"{about}: {where}{matter.text}"


def _generated(pod: Pod) -> Iterator[tuple[str, str]]:
    """Why the pod has generated claims although it asks for sticky ones."""
    if why := not_in_force(pod):
        reason = Reason.STICKY_NOT_IN_FORCE if why == WITHOUT_POLICY else Reason.INVALID_ANNOTATION
        yield reason, why


def _waiting(findings: PodFindings) -> Iterator[tuple[str, str]]:
    if findings.words.waits is not None:
        yield findings.words.waits
        return
    if gates := findings.pod.spec.scheduling_gates:
        text = counted(len(gates), "scheduling gate keeps", "scheduling gates keep")
        yield "SchedulingGated", f"{text} schedulers from the pod"
        return
    for use in findings.uses:
        yield from _blocking_claim(findings, use)
    scheduled = find_condition(findings.pod.status.conditions, "PodScheduled")
    notes = (*findings.warnings, scheduled.message if scheduled is not None else "")
    yield from waiting_for_group(findings.pod, notes, gone=findings.group_gone)
    if scheduled is not None and scheduled.status == "False":
        yield scheduled.reason or "Unschedulable", scheduled.message or "the scheduler says no more"
        yield from findings.words.beside
    elif findings.binding_waits:
        yield from ((BINDING, f"claim {claim}: {note}") for claim, note in findings.binding_waits)
    elif not findings.group_gone and not any(use.problem for use in findings.uses):
        name = findings.pod.spec.scheduler_name or "default-scheduler"
        yield "NotScheduledYet", f"scheduler {name} has not said anything about the pod"


def _blocking_claim(findings: PodFindings, use: ClaimUse) -> Iterator[tuple[str, str]]:
    pod = findings.pod
    if use.problem and not (use.unmade or use.is_generated):
        yield "ClaimNotFound", use.problem
    elif use.problem:
        why = findings.refused_claims if use.is_generated else ()
        yield "ClaimNotMade", ": ".join((use.problem, *why[-1:]))
    if use.explanation is None:
        return
    claim, name = use.explanation.view.claim, f"claim {use.claim}"
    listed = {entry.uid for entry in claim.status.reserved_for if is_pod(entry)}
    if claim.metadata.deleting:
        yield "ClaimDeleted", f"{name} is being deleted: the scheduler gives it to no new pod"
    elif use.explanation.release is not None:
        text = f"{name} is being released ({use.explanation.release}); it is allocated anew then"
        waits = "; and ".join(waits_for(use.explanation))
        yield "ClaimReleasing", f"{text}; it waits: {waits}" if waits else text
    elif len(claim.status.reserved_for) >= LIMIT and pod.metadata.uid not in listed:
        yield "ReservedForFull", f"all {LIMIT} places in the list of {name} are taken"


def _starting(findings: PodFindings) -> Iterator[tuple[str, str]]:
    for use in findings.uses:
        if use.explanation is not None and use.explanation.view.claim.status.allocation is None:
            text = f"the pod has a node, and claim {use.claim} is not allocated: the kubelet waits"
            yield "StrandedPod", text
    yield from taken_away(findings.pod, gone=findings.group_gone, listed=findings.listed)
    yield from (("Warning", note) for note in findings.warnings[-3:])
    if not findings.warnings:
        node = findings.pod.spec.node_name
        said = "has not reported anything about" if is_unreported(findings.pod) else "starts"
        yield "Starting", f"the kubelet of {node} {said} the pod"


def _refusal(findings: PodFindings) -> Iterator[tuple[str, str]]:
    """Why the kubelet ended the pod before a container ran."""
    if not isinstance(findings.pod, WholePod):
        return
    status = findings.pod.status
    if status.message.startswith("Pod was rejected"):
        yield status.reason or "Refused", f"{findings.pod.spec.node_name}: {status.message}"


def _resizing(findings: PodFindings) -> Iterator[tuple[str, str]]:
    """Why the kubelet does not give the pod the size that its spec wants."""
    pending = find_condition(findings.pod.status.conditions, "PodResizePending")
    if pending is not None and pending.status == "True":
        says = pending.message or "the kubelet says no more"
        yield f"Resize{pending.reason or 'Pending'}", says


def waiting_for_group(pod: Pod, notes: Collection[str], *, gone: bool) -> Iterator[tuple[str, str]]:
    """Why a pod of a PodGroup, which may be gone, has no node by the scheduler's notes about it:
    (reason, message)."""
    name = pod.spec.group_name
    if gone:
        yield "PodGroupMissing", f"PodGroup {name} does not exist, and the scheduler waits for it"
    grouped = bool(name) or pod.spec.workload_ref is not None
    if grouped and any(_RACE in note for note in notes):
        text = "another pod of the group had the shared claim allocated first, which the scheduler"
        yield "SharedClaimRace", f"{text} takes for a conflict (kubernetes/kubernetes#140053)"
    if grouped and any(_BLOCKED in note for note in notes):
        text = "pods of a gang keep each other from the claim that they share, before Kubernetes"
        yield "GangSharesClaim", f"{text} 1.36 for ever (kubernetes/kubernetes#137617)"


def taken_away(pod: Pod, *, gone: bool, listed: bool) -> Iterator[tuple[str, str]]:
    """Whether a pod with a node has lost its PodGroup, and its claims do not list it: (reason,
    message)."""
    if gone and not listed:
        text = f"PodGroup {pod.spec.group_name} is gone before its pods have ended: somebody has"
        why = (
            "removed its finalizer podgroup-protection, and the kubelet refuses to start such pods"
        )
        yield "PodGroupTakenAway", f"{text} {why}"
