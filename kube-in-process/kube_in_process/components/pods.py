"""Properties of pods: ended, bound, ready, and the claims that they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube_in_process.components.objects import condition, deleting, is_true, name, namespace, uid
from kube_in_process.objects import Object
from kube_in_process.options import Features

TERMINAL = ("Succeeded", "Failed")
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
GROUPS_API = "scheduling.k8s.io"


def phase(pod: Object) -> str:
    value: str = (pod.get("status") or {}).get("phase", "")
    return value


def ended(pod: Object) -> bool:
    return phase(pod) in TERMINAL


def node_name(pod: Object) -> str:
    value: str = pod["spec"].get("nodeName", "")
    return value


def on_node(pod: Object) -> tuple[str, ...]:
    """Index values: the node of a bound pod."""
    return (node_name(pod),) if node_name(pod) else ()


def done(pod: Object) -> bool:
    """The claim controller's rule for done: it ended, or was deleted without a node."""
    return ended(pod) or (deleting(pod) and not node_name(pod))


def active(pod: Object) -> bool:
    """Whether the pod counts as a replica: it has not ended and is not being deleted."""
    return not ended(pod) and not deleting(pod)


def ready(pod: Object) -> bool:
    return is_true(pod, "Ready")


def ready_since(pod: Object) -> str:
    readiness = condition(pod, "Ready")
    return "" if readiness is None else readiness.get("lastTransitionTime", "")


def group_name(pod: Object) -> str:
    """The name of the pod's PodGroup, or ''."""
    value: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return value


def group_key(pod: Object) -> tuple[str, ...]:
    """Index values: ``namespace/name`` of the pod's group."""
    return (f"{namespace(pod)}/{group_name(pod)}",) if group_name(pod) else ()


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of ``spec.resourceClaims``.

    ``claim`` is the name of the ResourceClaim, '' if the pod needs none after all, and None until
    it has been generated. ``group`` is the PodGroup that shares the claim, or ''.
    """

    entry: str
    claim: str | None
    template: str
    group: str = ""


def generated_names(obj: Object) -> dict[str, str]:
    """Claim names by entry, from ``status.resourceClaimStatuses`` of a pod or a PodGroup."""
    statuses = (obj.get("status") or {}).get("resourceClaimStatuses") or ()
    return {status["name"]: status.get("resourceClaimName") or "" for status in statuses}


def pod_claims(pod: Object, group: Object | None = None) -> Iterator[PodClaim]:
    """The claims of a pod; ``group`` is its PodGroup if the component supports those."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if extended and extended.get("resourceClaimName"):
        yield PodClaim("", extended["resourceClaimName"], "")
    entries = pod["spec"].get("resourceClaims")
    if not entries:
        return
    generated = generated_names(pod)
    shared = _shared(group)
    for entry in entries:
        template = entry.get("resourceClaimTemplateName") or ""
        mine = shared.get((entry["name"], entry.get("resourceClaimName") or "", template))
        claim = entry.get("resourceClaimName") or generated.get(entry["name"])
        yield PodClaim(entry["name"], claim, template, mine or "")


def _shared(group: Object | None) -> dict[tuple[str, str, str], str]:
    if group is None:
        return {}
    entries = group["spec"].get("resourceClaims") or ()
    return {
        (
            entry["name"],
            entry.get("resourceClaimName") or "",
            entry.get("resourceClaimTemplateName") or "",
        ): name(group)
        for entry in entries
    }


def pod_reference(pod: Object) -> Object:
    return {"resource": "pods", "name": name(pod), "uid": uid(pod)}


def group_reference(group: Object) -> Object:
    return {"apiGroup": GROUPS_API, "resource": "podgroups", "name": name(group), "uid": uid(group)}


def claims_used(pod: Object) -> tuple[str, ...]:
    """Index values: ``namespace/claim`` of every claim whose name is known."""
    space = pod["metadata"].get("namespace", "")
    return tuple(f"{space}/{pod_claim.claim}" for pod_claim in pod_claims(pod) if pod_claim.claim)


def allocation_of(claim: Object) -> Object | None:
    allocation: Object | None = (claim.get("status") or {}).get("allocation")
    return allocation


def reserved_for(claim: Object) -> list[Object]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def is_pod(reference: Object) -> bool:
    return not reference.get("apiGroup") and reference.get("resource") == "pods"


def is_group(reference: Object) -> bool:
    return (reference.get("apiGroup"), reference.get("resource")) == (GROUPS_API, "podgroups")


def keeps_unknown(features: Features) -> bool:
    """Whether KCM keeps references that it does not know and removes pods beside them."""
    return features.kcm_keeps_unknown_references or features.api_reserved_for


def observed(pod: Object) -> Object:
    """``observedGeneration`` for a condition. Pods have a generation from 1.33 on."""
    generation = pod["metadata"].get("generation")
    return {} if generation is None else {"observedGeneration": generation}
