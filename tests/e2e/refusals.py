"""Switches kube-controller-manager's resource claim controller off in one namespace.

A ValidatingAdmissionPolicy refuses its writes there. So scenarios in which it is down can share a
cluster with others in which it works.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from kube_in_process.real.client import Version

from claimctl.kube.errors import ApiError, from_answer
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient

_GROUP = "admissionregistration.k8s.io/v1"
_NAME = "claimctl-e2e-claims-controller-is-down"
_DOWN = "e2e.claimctl.io/claims-controller-is-down"
_LOOKED = "e2e.claimctl.io/claims-controller-is-back"
_CONTROLLERS = (
    "system:kube-controller-manager",
    # Each controller of kube-controller-manager has a ServiceAccount there.
    "system:serviceaccount:kube-system:resource-claim-controller",
)
_POLICY: Object = {
    "apiVersion": _GROUP,
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": _NAME},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchExpressions": [{"key": _DOWN, "operator": "Exists"}]},
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["resourceclaims", "resourceclaims/status"],
                }
            ],
        },
        "validations": [
            {
                "expression": f"!(request.userInfo.username in {list(_CONTROLLERS)})",
                "message": "the scenario has the resourceclaim controller down",
            }
        ],
    },
}
_BINDING: Object = {
    "apiVersion": _GROUP,
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": _NAME},
    "spec": {"policyName": _NAME, "validationActions": ["Deny"]},
}
_NAMESPACE: Version = ("v1", "Namespace")
_LOOK_SECONDS, _LOOKS = 0.1, 600


async def allow_refusals(documents: DocumentClient) -> None:
    """Install the policy, once for each cluster."""
    for body in (_POLICY, _BINDING):
        try:
            await documents.create(body)
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise


@dataclass(slots=True)
class ClaimsController:
    """The resource claim controller, as far as one namespace is concerned."""

    admin: Transport
    documents: DocumentClient
    namespace: str
    claims: Version
    _times: int = field(default=0)

    async def stop(self) -> None:
        """Switch it off; returns when its writes are refused."""
        await self._mark(_DOWN, "")
        for _ in range(_LOOKS):
            if await self._refused():
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise AssertionError("the policy that refuses KCM's writes does not come into effect")

    async def resume(self) -> None:
        await self._mark(_DOWN, None)
        for _ in range(_LOOKS):
            if not await self._refused():
                break
            await asyncio.sleep(_LOOK_SECONDS)
        # By itself it would retry only after as long as it was down.
        self._times += 1
        patch = {"metadata": {"labels": {_LOOKED: str(self._times)}}}
        for claim in await self.documents.list(self.claims, self.namespace):
            await self.documents.patch(
                self.claims, self.namespace, claim["metadata"]["name"], patch
            )

    async def _mark(self, label: str, value: str | None) -> None:
        patch = {"metadata": {"labels": {label: value}}}
        await self.documents.patch(_NAMESPACE, "", self.namespace, patch)

    async def _refused(self) -> bool:
        """Whether the server refuses a claim of the controller in a dry run."""
        path = f"/apis/{self.claims[0]}/namespaces/{self.namespace}/resourceclaims"
        headers = {
            "content-type": "application/json",
            "impersonate-user": _CONTROLLERS[0],
            "impersonate-group": "system:masters",
        }
        body = {
            "apiVersion": self.claims[0],
            "kind": self.claims[1],
            "metadata": {"generateName": "probe-"},
            "spec": {},
        }
        data = json.dumps(body).encode()
        answer = await self.admin.send("POST", path, (("dryRun", "All"),), headers, data)
        text = b"".join([part async for part in answer.body])
        if answer.status not in (201, 422):
            raise from_answer("POST", path, answer.status, {}, text)
        return answer.status == 422
