"""Generate claims from ResourceClaimTemplates, one per pod or one per PodGroup."""

from __future__ import annotations

from typing import Any

from kube_in_process.components.objects import (
    annotations_of,
    controller_of,
    controller_reference,
    controller_uid,
    key_of,
    name,
    namespace,
    uid,
)
from kube_in_process.components.pods import (
    POD_CLAIM_ANNOTATION,
    generated_names,
    group_name,
    pod_claims,
)
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.views import Views

MANAGER = "ResourceClaimController"
"""The field manager of writes to the status of pods."""


def owning_pod(claim: Object) -> tuple[str, ...]:
    """Index values: ``namespace/name`` of the pod for which the claim was generated."""
    owner = controller_of(claim)
    if owner is None or owner["kind"] != "Pod":
        return ()
    return (f"{namespace(claim)}/{owner['name']}",)


class Generator:
    """Makes each claim once and records its name in the status of the pod or the group."""

    def __init__(self, context: Context, views: Views) -> None:
        self._api = context.api_for("system:kube-controller-manager", MANAGER)
        self._context = context
        self._views = views
        self._views["resourceclaims"].index("owner", controller_uid)

    def for_pod(self, pod: Object, group: Object | None) -> Object:
        """Generate the pod's claims; return the pod with their names in its status."""
        statuses = generated_names(pod)
        if group is None and group_name(pod) and self._context.features.kcm_pod_groups:
            # only the group tells whether it shares the claims
            return pod
        for pod_claim in pod_claims(pod, group):
            if pod_claim.template and pod_claim.claim is None:
                if pod_claim.group:
                    generated = generated_names(group or {}).get(pod_claim.entry)
                else:
                    generated = self._claim(pod, pod_claim.entry, pod_claim.template)
                if generated is not None:
                    statuses[pod_claim.entry] = generated
        return self._record("pods", pod, statuses)

    def for_group(self, space: str, plain: str) -> None:
        group = self._views["podgroups"].get(space, plain)
        if group is None or "deletionTimestamp" in group["metadata"]:
            return
        statuses = generated_names(group)
        for entry in group["spec"].get("resourceClaims") or ():
            template = entry.get("resourceClaimTemplateName")
            if template and entry["name"] not in statuses:
                body = self._claim(group, entry["name"], template)
                if body is not None:
                    statuses[entry["name"]] = body
        self._record("podgroups", group, statuses)

    def _claim(self, owner: Object, entry: str, template: str) -> str | None:
        for claim in self._views["resourceclaims"].by("owner", uid(owner)):
            if annotations_of(claim).get(POD_CLAIM_ANNOTATION) == entry:
                return name(claim)
        stored = self._views["resourceclaimtemplates"].get(namespace(owner), template)
        if stored is None:
            raise self._without_template(owner, entry, template)
        created = self._api.create(
            "resourceclaims",
            _from_template(stored, _reference(owner, self._context.features), owner, entry),
        )
        self._views["resourceclaims"].assume(created)
        return name(created)

    def _without_template(self, owner: Object, entry: str, template: str) -> StatusError:
        """Record an Event, and return the error. The controller tries again with growing pauses."""
        missing = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
        why = f'resource claim template "{template}": {missing}'
        message = f"{owner['kind']}ResourceClaim {entry}: {why}"
        self._context.events.record(
            "resource_claim", owner, "Warning", "FailedResourceClaimCreation", message
        )
        return StatusError(404, "NotFound", why)

    def _record(self, plural: str, owner: Object, statuses: dict[str, str]) -> Object:
        if statuses == generated_names(owner):
            return owner
        entries = [{"name": key, "resourceClaimName": value} for key, value in statuses.items()]
        patch = {"status": {"resourceClaimStatuses": entries}}
        space, plain = key_of(owner)
        written = self._api.patch(plural, space, plain, patch, "status", kind="merge")
        self._views[plural].assume(written)
        return written


def _reference(owner: Object, features: Features) -> Object:
    """The owner of a generated claim; from 1.36 the claim does not block its deletion."""
    reference = controller_reference(owner)
    if features.version >= (1, 36):
        del reference["blockOwnerDeletion"]
    return reference


def _from_template(template: Object, reference: Object, owner: Object, entry: str) -> Object:
    given: dict[str, Any] = template["spec"].get("metadata") or {}
    metadata = {
        **given,
        "generateName": f"{name(owner)}-{entry}-",
        "namespace": namespace(owner),
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_ANNOTATION: entry},
        "ownerReferences": [reference],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": template["spec"]["spec"],
    }
