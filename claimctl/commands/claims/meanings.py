"""What every reason of claimctl means, and what to do about it. docs/reference shows the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from claimctl.reservation.facts.reasons import Reason


class Topic(StrEnum):
    """Which question a reason answers."""

    FINE = "All is well"
    ENDS = "Why a claim is released"
    NOT_HELD = "Why a claim is not reserved"
    ONE_BY_ONE = "Why pods are listed one by one although the cluster serves PodGroups"
    WAITS = "Why a release waits"
    UNDECIDED = "Why claimctl decides nothing"
    ORPHAN = "Why an orphan is not freed"
    WRONG = "What is wrong with the list, or with the cluster"


@dataclass(frozen=True, slots=True)
class ReasonMeaning:
    topic: Topic
    meaning: str
    """One sentence: what is so."""
    remedy: str = ""
    """What to do; "" if there is nothing to do."""


_WAIT = "Wait: it ends by itself."
_FINE = {
    Reason.RESERVED: "The claim's list has the workload, so the claim is held.",
    Reason.HELD: "The claim is held, so there is no release.",
    Reason.CONSISTENT: "The claim's list is as claimctl wants it.",
    Reason.READY: "The ClaimReservation does what it says.",
}
_ENDS = {
    Reason.WORKLOAD_ENDED: "The workload is gone or complete, and makes no more pods.",
    Reason.IDLE: "The workload wanted no pods for longer than `idleTimeoutSeconds`.",
    Reason.REALLOCATED: (
        "Pods of the claim found no node for longer than `reallocateTimeoutSeconds` while no pod "
        "used it, or a taint of the device evicts pods, or the annotation "
        "`claimctl.io/reallocate` asked for it. The scheduler gives the claim other devices."
    ),
    Reason.WITHDRAWN: "The ClaimReservation, or the annotation that made it, was deleted.",
    Reason.RELEASE_REQUESTED: "A user ran `claimctl release`.",
    Reason.CLAIM_DELETED: "The claim is being deleted.",
    Reason.WORKLOAD_RECREATED: (
        "A workload of the same name replaced the one that the claim was held for."
    ),
}
_NOT_HELD = {
    Reason.CLAIM_NOT_FOUND: (
        "The claim does not exist.",
        "Create it, or name a template in `spec.resourceClaimTemplateName`.",
    ),
    Reason.NOT_ALLOCATED: (
        "The claim has no devices yet.",
        "Nothing, if no pod uses it. If a pod waits: `kubectl describe pod` says why.",
    ),
    Reason.PENDING: ("claimctl is about to write the hold.", ""),
    Reason.WORKLOAD_NOT_FOUND: (
        "The workload of `workloadRef` does not exist.",
        "Create it, or delete the ClaimReservation and make one for another workload.",
    ),
    Reason.WORKLOAD_KIND_UNSUPPORTED: (
        "claimctl does not know the kind of `workloadRef`.",
        "Correct `workloadRef` in a new ClaimReservation, or install the kind.",
    ),
    Reason.WORKLOAD_STATE_UNKNOWN: (
        "claimctl cannot tell whether the workload wants pods: the rule of its kind fails, the "
        "cluster does not serve the kind, or the controller may not read it. The claim stays held.",
        "Follow the message: correct the WorkloadKind, or grant the right that it names. To give "
        "the devices up all the same: `claimctl release CLAIM`.",
    ),
    Reason.CHILDREN_REMAIN: (
        "The workload is over, and objects that it made are left. They may still make pods.",
        "Wait for garbage collection, or delete the objects that the message names.",
    ),
    Reason.CLAIM_NOT_NAMED_BY_POD: (
        "No pod of the workload has named the claim yet.",
        "Start the workload, and name the claim in its pods: "
        "`spec.resourceClaims[].resourceClaimName`.",
    ),
    Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE: (
        "The workload's pod template does not name the claim.",
        "Name it in `spec.template.spec.resourceClaims[].resourceClaimName`.",
    ),
    Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD: (
        "Mode `native`: the claim was created without `spec.reservedFor`.",
        "Delete it, and let claimctl create it: set `spec.resourceClaimTemplateName`.",
    ),
    Reason.ALREADY_RESERVED_FOR: (
        "Mode `native`: the claim was created for another workload.",
        "Give the second workload a claim of its own.",
    ),
    Reason.TEMPLATE_NOT_FOUND: (
        "The ResourceClaimTemplate of `spec.resourceClaimTemplateName` does not exist.",
        "Create it.",
    ),
    Reason.TEMPLATE_INVALID: (
        "The API server refuses the claim that claimctl makes from the template.",
        "Correct the template; the message has the API server's words.",
    ),
    Reason.HOLD_YIELDED: (
        "The list is full and a pod waits for a place, so the hold gave its place up.",
        "Keep fewer than 256 pods on the claim. claimctl adds the hold again when there is room.",
    ),
    Reason.DEVICE_TAINTED: (
        "A taint of the device evicts its pods (NoExecute), so the claim is not held beside them.",
        "The next pod gets another device. Tolerate the taint in the claim's request to stay.",
    ),
    Reason.FROZEN: (
        "A DowngradePlan asks claimctl to add no holds.",
        "`claimctl downgrade-status` shows the next step of the downgrade.",
    ),
}
_ONE_BY_ONE = {
    Reason.NO_SCHEDULING_GROUP: (
        "The pod template names no PodGroup, so the list has one entry for each pod.",
        "Set `spec.schedulingGroup.podGroupName` in the pod template to share by any number.",
    ),
    Reason.POD_TEMPLATE_IMMUTABLE: (
        "claimctl cannot add a PodGroup to the pod template: a Job's template is immutable.",
        "Set `spec.schedulingGroup.podGroupName` when you create the Job.",
    ),
    Reason.TEMPLATE_INJECTION_OFF: (
        "`claimctl.io/pod-group: inject` asks for a PodGroup, and the controller may not do it.",
        "Run the controller with `--allow-template-injection` and apply "
        "`rbac/template-injection.yaml`, or set the PodGroup yourself.",
    ),
    Reason.CLAIM_NOT_IN_POD_GROUP: (
        "The PodGroup exists and does not share this claim, and its claims are immutable.",
        "Name another PodGroup in the pod template.",
    ),
    Reason.TOO_MANY_CLAIMS_FOR_POD_GROUP: (
        "The PodGroup has as many claims as a PodGroup can have.",
        "Name another PodGroup in the pod template.",
    ),
    Reason.POD_GROUP_PENDING: ("claimctl is about to create the PodGroup.", ""),
}
_WAITS = {
    Reason.WORKLOAD_WANTS_PODS: (
        "The workload runs, or wants to run pods.",
        "Scale it to 0, suspend it or delete it, if the claim should be released.",
    ),
    Reason.IDLE_TIMEOUT: (
        "The workload is idle, and not yet for `idleTimeoutSeconds`.",
        "Wait, or run `claimctl release CLAIM`.",
    ),
    Reason.RETENTION: (
        "The retention policy keeps the claim.",
        "Run `claimctl release CLAIM`, or change `retentionPolicy`.",
    ),
    Reason.CONSUMERS_LEFT: (
        "Pods use the claim.",
        "Scale the workload down, or delete the pods that the message names.",
    ),
    Reason.FORCE_DELETED_PODS: (
        "A pod vanished while its containers may have been running, so the devices may be in use.",
        "Wait: the kubelet ends it, within 35 s and the pod's grace period, and within a minute "
        "more after its own start. A node that is silent ends nothing: bring it back, or run "
        "`claimctl release CLAIM --node-is-off NODE` if it is off for good.",
    ),
    Reason.HISTORY_UNKNOWN: (
        "The controller started a short while ago, and pods may have vanished before.",
        f"{_WAIT} It takes `forceDeletedPodGraceSeconds`, or 300 s if that is not set.",
    ),
    Reason.OTHER_HOLDERS: (
        "Another ClaimReservation of the same claim still holds it.",
        "`claimctl explain CLAIM` names it.",
    ),
    Reason.UNKNOWN_REFERENCES: (
        "The list has an entry of another client.",
        "Ask its owner to remove it; claimctl never does.",
    ),
    Reason.PODS_MAY_BE_BOUND: (
        "A scheduler may still bind a pod to the claim as it was before.",
        f"{_WAIT} Or delete the pods that the message names.",
    ),
    Reason.PODS_LISTED: (
        "A scheduler has listed a pod that is not bound yet, and may bind it at any moment.",
        f"{_WAIT} If the pod stays pending, delete it.",
    ),
    Reason.SETTLING: (
        "claimctl waits until every scheduler has seen that the claim takes no more pods.",
        _WAIT,
    ),
    Reason.RELEASING: ("The release is under way.", _WAIT),
    Reason.FINISHED_PODS_LEFT: (
        "Finished pods still exist beside running ones, and their entries must stay.",
        "Delete the finished pods.",
    ),
}
_UNDECIDED = {
    Reason.UNREADABLE: (
        "An object that concerns the claim cannot be read.",
        "Correct or delete it. If a newer version wrote it, upgrade claimctl.",
    ),
}
_ORPHAN = {
    Reason.CANNOT_TELL: (
        "claimctl cannot tell whether an object in the list exists.",
        "Ask its owner to remove the entry, or give claimctl the right to read the object.",
    ),
    Reason.FOREIGN_FINALIZER: (
        "The object has a finalizer that claimctl did not set.",
        "Ask the owner of the finalizer to remove it.",
    ),
}
_WRONG = {
    Reason.MORE_PODS_THAN_PLACES: (
        "More pods use the claim than the list has places.",
        "Keep fewer pods on the claim, or share it through a PodGroup (Kubernetes 1.36).",
    ),
    Reason.SCHEDULER_IGNORES_GROUPS: (
        "The scheduler or kube-controller-manager does not know that PodGroups share claims.",
        "Switch the feature gate `DRAWorkloadResourceClaims` on there, too.",
    ),
    Reason.KUBELETS_REFUSE: (
        "Kubelets refuse pods that share a claim through a PodGroup.",
        "Upgrade the kubelets, or switch the feature gate on there.",
    ),
    Reason.OLD_KUBELETS: (
        "Some kubelets are too old for pods that share a claim through a PodGroup.",
        "Keep the pods away from these nodes, or upgrade the kubelets.",
    ),
    Reason.NEARLY_FULL: (
        "The list has 240 or more of 256 entries.",
        "Keep fewer pods on the claim, or share it through a PodGroup (Kubernetes 1.36).",
    ),
    Reason.FULL: (
        "All 256 places of the list are taken; more pods wait.",
        "Keep fewer pods on the claim, or share it through a PodGroup (Kubernetes 1.36).",
    ),
    Reason.STRANDED_POD: (
        "A pod is bound, and its claim has no devices: the kubelet never starts it.",
        "Delete the pod.",
    ),
    Reason.FIGHTING_WRITER: (
        "Another client reverts what claimctl writes, so claimctl pauses.",
        "`kubectl get resourceclaim CLAIM -o yaml --show-managed-fields` names the writers.",
    ),
    Reason.DANGLING_REFERENCES: (
        "The list has entries of pods that are gone, and nobody removed them.",
        "Nothing: claimctl removes them after `--dead-reference-seconds`.",
    ),
    Reason.STATUS_SHORTENED: (
        "More pods count than the status lists. All of them count.",
        "",
    ),
    Reason.FORBIDDEN: (
        "The API server refuses a write of the controller: a right is missing.",
        "`claimctl doctor` names the right; apply `rbac/` again.",
    ),
    Reason.INVALID: (
        "The API server refuses a write of the controller as invalid.",
        "The message has the API server's words. A webhook or policy may stand behind it.",
    ),
    Reason.INVALID_ANNOTATION: (
        "An annotation of claimctl on the workload has a value that it cannot have.",
        "The message says what was expected.",
    ),
}


def _meanings() -> dict[Reason, ReasonMeaning]:
    both: dict[Topic, Mapping[Reason, tuple[str, ...]]] = {
        Topic.FINE: {reason: (text,) for reason, text in _FINE.items()},
        Topic.ENDS: {reason: (text,) for reason, text in _ENDS.items()},
        Topic.NOT_HELD: _NOT_HELD,
        Topic.ONE_BY_ONE: _ONE_BY_ONE,
        Topic.WAITS: _WAITS,
        Topic.UNDECIDED: _UNDECIDED,
        Topic.ORPHAN: _ORPHAN,
        Topic.WRONG: _WRONG,
    }
    return {
        reason: ReasonMeaning(topic, *texts)
        for topic, meanings in both.items()
        for reason, texts in meanings.items()
    }


MEANINGS: Mapping[Reason, ReasonMeaning] = _meanings()
