"""KCM's resource claim controller: generated claims, and the entries of ``status.reservedFor``.

It has two halves, as upstream. One removes entries of pods that are done or gone, and deallocates
the claim with the last one. The other puts back bound pods that are not listed. A finished pod on
an allocated claim keeps both busy (kubernetes/kubernetes#141274).
"""

from __future__ import annotations

from typing import ClassVar

from kube_in_process.components.controllers.generated import Generator, owning_pod
from kube_in_process.components.objects import (
    deleting,
    finalizers,
    key_of,
    namespace,
    uid,
    with_metadata,
    without,
)
from kube_in_process.components.pods import (
    PodClaim,
    allocation_of,
    claims_used,
    done,
    ended,
    group_name,
    group_reference,
    is_group,
    is_pod,
    keeps_unknown,
    node_name,
    pod_claims,
    pod_reference,
    reserved_for,
)
from kube_in_process.components.scheduler.binding import FINALIZER
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change

REMEMBERED = 4096
"""The number of deletions that are remembered. For other objects, a live GET tells."""

_LOOKS_AT_CLAIMS = (1, 34)
"""Before it, KCM never looks at a claim because the claim is there or has changed, only at the
claims of a pod that changes (kubernetes/kubernetes#132334; seen on 1.32.13)."""

Task = tuple[str, str, str]
"""('claim', 'pod' or 'group', namespace, name)."""


class UnsupportedReference(StatusError):
    """KCM up to 1.35 stops at the first reference that it does not know, and tries again later."""

    def __init__(self, reference: Object) -> None:
        super().__init__(500, "InternalError", f"unsupported ReservedFor entry: {reference}")


class ClaimController(Component[Task]):
    name: ClassVar[str] = "resourceclaim-controller"

    def __init__(self, context: Context) -> None:
        self.finished_pod_writes = 0
        """How often finished pods were put back into a list (the loop of #141274)."""
        self._gone: dict[str, None] = {}
        self._listed: tuple[Object, frozenset[str]] = ({}, frozenset())
        super().__init__(context)

    def watch(self) -> None:
        self.views = self.context.feed.views(self.context.timings.kcm_cache_lag)
        self.views["pods"].index("claim", claims_used)
        self.views["resourceclaims"].index("pod", owning_pod)
        self._generator = Generator(self.context, self.views)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["pods"].subscribe(self._pod_changed)
        self.views["podgroups"].subscribe(self._group_changed)

    def sync(self, key: Task) -> None:
        kind, space, plain = key
        if kind == "claim":
            self._sync_claim(space, plain)
        elif kind == "pod":
            self._sync_pod(space, plain)
        elif self.context.features.kcm_pod_groups:
            self._generator.for_group(space, plain)

    # Changes of objects

    def _claim_changed(self, change: Change) -> None:
        """Add pods before the claim: a bound pod is put back before its claim's list is cleaned."""
        for pod in self.views["pods"].by("claim", "/".join(change.key)):
            if self._needs_work(pod):
                self._add_pod(pod)
        for plain in owning_pod(change.object):
            self.queue.add(("pod", *_split(plain)))
        if self.context.features.version >= _LOOKS_AT_CLAIMS:
            self.queue.add(("claim", *change.key))

    def _add_pod(self, pod: Object) -> None:
        pause = self.context.timings.kcm_finished_pod_loop if ended(pod) else 0.0
        self.queue.add_after(("pod", *key_of(pod)), pause)

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if not pod["spec"].get("resourceClaims") and not claims_used(pod):
            return
        if change.new is None:
            self._remember(uid(pod))
        if change.new is None or done(pod):
            self._release(pod)
        if change.new is not None and self._needs_work(pod):
            self._add_pod(pod)

    def _remember(self, gone: str) -> None:
        self._gone[gone] = None
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def _release(self, pod: Object) -> None:
        for used in claims_used(pod):
            self.queue.add(("claim", *_split(used)))
        for claim in self.views["resourceclaims"].by("pod", "/".join(key_of(pod))):
            self.queue.add(("claim", *key_of(claim)))

    def _group_changed(self, change: Change) -> None:
        group = change.object
        self.queue.add(("group", *change.key))
        if change.new is None:
            self._remember(uid(group))
        named = group["spec"].get("resourceClaims") or ()
        generated = (group.get("status") or {}).get("resourceClaimStatuses") or ()
        for entry in (*named, *generated):
            if entry.get("resourceClaimName"):
                self.queue.add(("claim", change.key[0], entry["resourceClaimName"]))
        if change.new is not None and change.old is None:
            for pod in self.views["pods"].items():
                if namespace(pod) == change.key[0] and group_name(pod) == change.key[1]:
                    self._add_pod(pod)

    # The half that removes entries

    def _sync_claim(self, space: str, plain: str) -> None:
        claim = self.views["resourceclaims"].get(space, plain)
        if claim is None:
            return
        listed = reserved_for(claim)
        valid = [reference for reference in listed if self._stays(claim, reference)]
        protected = FINALIZER in finalizers(claim)
        if len(valid) < len(listed):
            self._clean(claim, valid, deallocate=protected and not valid)
        elif protected and not listed and (deleting(claim) or self._leaked(claim)):
            self._clean(claim, [], deallocate=True)
        if not valid:
            self._delete_unused(claim)

    def _leaked(self, claim: Object) -> bool:
        wanted = self.context.options.kcm_deallocates_empty_lists
        return wanted and allocation_of(claim) is not None

    def _stays(self, claim: Object, reference: Object) -> bool:
        features = self.context.features
        if is_pod(reference):
            return self._pod_stays(claim, reference)
        if is_group(reference) and features.kcm_pod_groups:
            return self._group_stays(claim, reference)
        if not keeps_unknown(features):
            raise UnsupportedReference(reference)
        return True

    def _pod_stays(self, claim: Object, reference: Object) -> bool:
        """A pod that is not in the view may be new: only a live GET proves that it is gone."""
        pod = self.views["pods"].get(namespace(claim), reference["name"])
        if reference["uid"] in self._gone:
            return False
        if pod is None:
            pod = self.api.find("pods", namespace(claim), reference["name"])
        return pod is not None and uid(pod) == reference["uid"] and not done(pod)

    def _group_stays(self, claim: Object, reference: Object) -> bool:
        group = self.views["podgroups"].get(namespace(claim), reference["name"])
        if reference["uid"] in self._gone:
            return False
        if group is None:
            group = self.api.find("podgroups", namespace(claim), reference["name"])
        return group is not None and uid(group) == reference["uid"]

    def _clean(self, claim: Object, valid: list[Object], *, deallocate: bool) -> None:
        """Remove the last entry and the allocation in one write, the finalizer in a second."""
        status = {**(claim.get("status") or {})}
        status.pop("reservedFor", None)
        if valid:
            status["reservedFor"] = valid
        if deallocate:
            status.pop("allocation", None)
        if status != (claim.get("status") or {}):
            claim = self._update({**claim, "status": status}, "status")
        if deallocate:
            kept = without(finalizers(claim), FINALIZER)
            self._update(with_metadata(claim, finalizers=kept or None), "")

    def _update(self, claim: Object, subresource: str) -> Object:
        written = self.api.update("resourceclaims", claim, subresource)
        if subresource or not deleting(claim):
            self.views["resourceclaims"].assume(written)
        return written

    def _delete_unused(self, claim: Object) -> None:
        """Delete a generated claim as soon as its pod has ended, even if the pod still exists."""
        for owner in owning_pod(claim):
            space, plain = _split(owner)
            pod = self.views["pods"].get(space, plain) or self.api.find("pods", space, plain)
            owned = pod is not None and any(
                reference["uid"] == uid(pod) for reference in claim["metadata"]["ownerReferences"]
            )
            if (pod is None or not owned or done(pod)) and not deleting(claim):
                self.api.delete("resourceclaims", *key_of(claim))

    # The half that puts pods back

    def _needs_work(self, pod: Object) -> bool:
        """Whether a claim must be generated, or an allocated claim does not list this bound pod."""
        if deleting(pod) or self._stays_out(pod):
            return False
        for pod_claim in pod_claims(pod, self._group(pod)):
            if pod_claim.claim is None:
                return not ended(pod)
            if pod_claim.claim and node_name(pod) and self._unlisted(pod, pod_claim) is not None:
                return True
        return False

    def _stays_out(self, pod: Object) -> bool:
        return ended(pod) and not self.context.features.kcm_puts_finished_pods_back

    def _group(self, pod: Object) -> Object | None:
        if not group_name(pod) or not self.context.features.kcm_pod_groups:
            return None
        return self.views["podgroups"].get(namespace(pod), group_name(pod))

    def _unlisted(self, pod: Object, used: PodClaim) -> Object | None:
        """The claim, if it is allocated and lists neither the pod nor its group.

        A UID in the list counts, whatever the kind of its entry. A group counts by its name,
        because pods do not know its UID. For pods whose group does not exist, nothing is written.
        """
        claim = self.views["resourceclaims"].get(namespace(pod), used.claim or "")
        if claim is None or deleting(claim):
            return None
        allocation = allocation_of(claim)
        if allocation is None or allocation.get("reservedForAnyPod"):
            return None
        if self._lists(claim, uid(pod)):
            return None
        return None if self._group_is_listed(pod, claim) else claim

    def _lists(self, claim: Object, wanted: str) -> bool:
        """Hundreds of pods of the same claim ask one after the other."""
        if self._listed[0] is not claim:
            self._listed = claim, frozenset(reference["uid"] for reference in reserved_for(claim))
        return wanted in self._listed[1]

    def _group_is_listed(self, pod: Object, claim: Object) -> bool:
        if not group_name(pod) or not self.context.features.kcm_pod_groups:
            return False
        listed = [reference["name"] for reference in reserved_for(claim) if is_group(reference)]
        return group_name(pod) in listed or self._group(pod) is None

    def _sync_pod(self, space: str, plain: str) -> None:
        pod = self.views["pods"].get(space, plain)
        if pod is None or deleting(pod) or self._stays_out(pod):
            return
        group = self._group(pod)
        if not ended(pod):
            pod = self._generator.for_pod(pod, group)
        if not node_name(pod):
            return
        for pod_claim in tuple(pod_claims(pod, group)):
            claim = self._unlisted(pod, pod_claim)
            if claim is not None:
                shared = group if pod_claim.group else None
                self._put_back(claim, pod, shared)

    def _put_back(self, claim: Object, pod: Object, group: Object | None) -> None:
        reference = pod_reference(pod) if group is None else group_reference(group)
        status = {**claim["status"], "reservedFor": [*reserved_for(claim), reference]}
        self._update({**claim, "status": status}, "status")
        if ended(pod):
            self.finished_pod_writes += 1


def _split(key: str) -> tuple[str, str]:
    space, _, plain = key.partition("/")
    return space, plain
