"""PostFilter of DynamicResources: deallocate a claim if no node fits the pod."""

from __future__ import annotations

from collections.abc import Callable

from kube_in_process.components.objects import key_of, uid
from kube_in_process.components.pods import is_group, node_name, reserved_for
from kube_in_process.components.scheduler.planning import Unschedulable
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import Views

UNRESERVED = "ResourceClaim unreserved for PodGroup"


class PostFilter:
    """Deallocates a claim that lists nothing, or nothing but this pod.

    It also removes the reference of the pod's PodGroup if no pod of the group is scheduled, and
    nothing else is listed. Up to 1.36, the allocation then stays until the next pod is refused.
    """

    def __init__(self, api: ApiFor, views: Views, features: Callable[[], Features]) -> None:
        self._api = api
        self._views = views
        self._features = features

    def run(self, pod: Object, refusal: Unschedulable) -> str:
        """Return the text for the condition."""
        if not refusal.claims:
            return "no new claims to deallocate"
        for claim in refusal.unusable:
            if all(reference["uid"] == uid(pod) for reference in reserved_for(claim)):
                self._write(claim, allocation=None)
                return "deallocation of ResourceClaim completed"
        for pod_claim in refusal.claims:
            if (
                pod_claim.group is not None
                and self._idle(pod_claim.group)
                and _only_group(pod_claim.seen)
            ):
                gone = self._features().post_filter_deallocates_groups
                self._write(pod_claim.seen, **({"allocation": None} if gone else {}))
                return UNRESERVED
        return "still not schedulable"

    def _idle(self, group: Object) -> bool:
        members = self._views["pods"].by("group", "/".join(key_of(group)))
        return not any(node_name(member) for member in members)

    def _write(self, claim: Object, **parts: None) -> None:
        status = {**(claim.get("status") or {}), "reservedFor": None, **parts}
        kept = {key: value for key, value in status.items() if value is not None}
        try:
            written = self._api.update("resourceclaims", {**claim, "status": kept}, "status")
        except StatusError:
            return
        self._views["resourceclaims"].assume(written)


def _only_group(claim: Object) -> bool:
    listed = reserved_for(claim)
    return len(listed) == 1 and is_group(listed[0])
