"""The admission policies of the components work on the embedded cluster as on real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.options import Authorization, ClusterOptions, Preset

from tests.support.crds import definitions

COMPONENTS = Path(__file__).parents[3] / "deploy" / "components"
RESERVATIONS = "/apis/claimctl.io/v1alpha1/namespaces/ml/claimreservations"
PODS = "/api/v1/namespaces/ml/pods"
Json = dict[str, Any]


class PolicedServer:
    """An API server with claimctl's CRDs and the policies of one component."""

    def __init__(self) -> None:
        options = ClusterOptions(
            preset=Preset.PLAIN,
            kubernetes_version=(1, 36),
            authorization=Authorization.RBAC,
        )
        self._handler = api_server(options, LoopClock(EPOCH))

    async def sent(
        self, method: str, path: str, body: Any = None, user: str = ""
    ) -> tuple[int, str, str]:
        """The status, the message and the warnings of the answer."""
        kind = {"PATCH": "application/merge-patch+json"}.get(method, "application/json")
        data = json.dumps(body).encode() if body is not None else None
        headers = {"content-type": kind, **({"impersonate-user": user} if user else {})}
        found = await self._handler.send(method, path, [], headers, data)
        whole = json.loads(b"".join([part async for part in found.body]))
        message = str(whole.get("message", ""))
        return found.status, message, found.headers.get("warning", "")

    async def installed(self, component: str) -> PolicedServer:
        for namespace in ("ml", "claimctl-system"):
            await self.sent("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for each in definitions():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            assert (await self.sent("POST", path, each))[0] == 201
        for file in COMPONENTS.joinpath(component).glob(f"{component}.yaml"):
            for each in yaml.safe_load_all(file.read_text(encoding="utf-8")):
                status, told, _ = await self.sent("POST", path_of(each), each)
                assert status == 201, told
        return self


def path_of(body: Json) -> str:
    kind, version = body["kind"].lower(), body["apiVersion"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    if version == "v1":
        return f"/api/v1/namespaces/{body['metadata']['namespace']}/{plural}"
    return f"/apis/{version}/{plural}"


def pod(name: str, **spec: Any) -> Json:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    containers = [{"name": "c", "image": "i"}]
    whole = {"nodeName": "n", "containers": containers, "resourceClaims": claims, **spec}
    return {"metadata": {"name": name}, "spec": whole}


async def test_a_pod_with_claims_is_not_deleted_at_once_unless_it_is_marked() -> None:
    server = await PolicedServer().installed("pod-deletion")
    grace = "terminationGracePeriodSeconds is 0, and the pod has claims"
    assert (
        grace in (await server.sent("POST", PODS, pod("zero", terminationGracePeriodSeconds=0)))[1]
    )
    assert (await server.sent("POST", PODS, pod("p")))[0] == 201
    at_once = {"gracePeriodSeconds": 0}
    status, told, _ = await server.sent("DELETE", f"{PODS}/p", at_once)
    assert (status, "pod p may still use its devices on node n" in told) == (422, True)
    mark = {"metadata": {"annotations": {"claimctl.io/force-delete": ""}}}
    await server.sent("PATCH", f"{PODS}/p", mark)
    assert (await server.sent("DELETE", f"{PODS}/p", at_once))[0] == 200


async def test_limits_refuse_what_exceeds_them_and_wrong_limits() -> None:
    server = await PolicedServer().installed("limits")
    path = "/api/v1/namespaces/claimctl-system/configmaps/claimctl-limits"
    wrong = await server.sent("PATCH", path, {"data": {"maxIdleTimeoutSeconds": "1h"}})
    assert "must be whole numbers of seconds" in wrong[1]
    limits = {"minForceDeletedPodGraceSeconds": "30", "retentionPolicies": "WhileRunning"}
    assert (await server.sent("PATCH", path, {"data": limits}))[0] == 200
    await let_alice_reserve(server)
    reference = {"apiGroup": "apps", "kind": "Deployment", "name": "d"}
    spec = {"resourceClaimName": "c", "workloadRef": reference, "retentionPolicy": "Manual"}
    body = {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "metadata": {"name": "r"},
        "spec": spec,
    }
    refused = await server.sent("POST", RESERVATIONS, body, "alice")
    assert refused[0] == 403
    assert "retentionPolicy is Manual, and this cluster allows only WhileRunning" in refused[1]
    # an administrator may exceed the limits
    assert (await server.sent("POST", RESERVATIONS, body))[0] == 201


async def let_alice_reserve(server: PolicedServer) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/ml"
    rule = {"apiGroups": ["claimctl.io"], "resources": ["claimreservations"], "verbs": ["create"]}
    await server.sent("POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    }
    assert (await server.sent("POST", f"{rbac}/rolebindings", binding))[0] == 201


async def test_a_wrong_annotation_is_warned_of() -> None:
    server = await PolicedServer().installed("admission-policy")
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    body = {
        "metadata": {"name": "d", "annotations": {"claimctl.io/reserve": "gpu"}},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/ml/deployments"
    status, _, warned = await server.sent("POST", path, body)
    assert (status, "names a claim that the pod template does not name" in warned) == (201, True)
