"""Who is let in, who may do what, and what the server says about it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from kube_in_process.api_server import api_server
from kube_in_process.auth.authn import ANONYMOUS
from kube_in_process.http.handler import Handler, Request
from kube_in_process.options import Authorization, ClusterOptions, Preset

from kube_in_process_tests.clocks import StoppedClock

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "system:serviceaccount:default:sa"


class RbacWorld:
    """A server under RBAC; requests come from the administrator unless headers say otherwise."""

    def __init__(self, authorization: Authorization = Authorization.RBAC) -> None:
        self.clock = StoppedClock()
        self.handler: Handler = api_server(
            ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, authorization=authorization),
            self.clock,
        )
        self.post("/api/v1/namespaces", {"metadata": {"name": "default"}})

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Object]:
        data = None if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        pairs = [tuple(part.split("=", 1)) for part in query.split("&") if part]

        async def main() -> tuple[int, Object]:
            request = Request(method, path, pairs, dict(headers or {}), data)  # type: ignore[arg-type]
            answer = await self.handler.send_as(self.handler.actor, request)
            text = b"".join([part async for part in answer.body])
            return answer.status, json.loads(text) if text.startswith(b"{") else {}

        return asyncio.run(main())

    def post(self, path: str, body: Object, headers: Mapping[str, str] | None = None) -> Object:
        status, answer = self.ask("POST", path, body, headers)
        assert status == 201, answer
        return answer

    def account(self) -> Mapping[str, str]:
        """A ServiceAccount's credentials."""
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        self.post(accounts, {"metadata": {"name": "sa"}})
        answer = self.post(f"{accounts}/sa/token", {"spec": {"expirationSeconds": 600}})
        return {"authorization": f"Bearer {answer['status']['token']}"}

    def grant(self, rules: list[Object], cluster: bool = False, **more: Any) -> None:
        kind, where = ("ClusterRole", "") if cluster else ("Role", "/namespaces/default")
        base = f"/apis/{RBAC}/v1{where}/{kind.lower()}"
        self.post(f"{base}s", {"metadata": {"name": "r"}, "rules": rules, **more})
        subject = {"kind": "ServiceAccount", "name": "sa", "namespace": "default"}
        reference = {"apiGroup": RBAC, "kind": kind, "name": "r"}
        binding = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
        self.post(f"{base}bindings", binding)


def rule(group: str, resources: list[str], verbs: list[str], **more: Any) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


PODS = "/api/v1/namespaces/default/pods"


def test_nobody_in_particular_may_read_the_version_and_nothing_else() -> None:
    world = RbacWorld()
    anonymous = {"authorization": ""}
    assert world.ask("GET", "/version", headers=anonymous)[0] == 200
    status, answer = world.ask("GET", PODS, headers=anonymous)
    assert status == 403
    assert answer["message"] == (
        f'pods is forbidden: User "{ANONYMOUS.user}" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )


def test_a_bad_token_is_401_even_where_everybody_may_look() -> None:
    assert RbacWorld().ask("GET", "/version", headers={"authorization": "Bearer x"})[0] == 401


def test_without_authorization_everybody_is_an_administrator() -> None:
    world = RbacWorld(Authorization.ALWAYS_ALLOW)
    assert world.ask("GET", PODS, headers={"authorization": "Bearer x"})[0] == 200
    assert world.ask("GET", PODS, headers={"authorization": ""})[0] == 200


def test_a_token_is_good_until_it_expires_or_its_account_goes() -> None:
    world = RbacWorld()
    headers = world.account()
    assert world.ask("GET", PODS, headers=headers)[0] == 403
    world.clock.time = datetime(2026, 1, 2, 0, 10, tzinfo=UTC)
    assert world.ask("GET", PODS, headers=headers)[0] == 401
    world = RbacWorld()
    headers = world.account()
    world.ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/sa")
    assert world.ask("GET", PODS, headers=headers)[0] == 401


def test_roles_are_looked_at_anew_after_every_change() -> None:
    world = RbacWorld()
    headers = world.account()
    assert world.ask("GET", PODS, headers=headers)[0] == 403
    world.grant([rule("", ["pods"], ["list"])])
    assert world.ask("GET", PODS, headers=headers)[0] == 200
    assert world.ask("GET", "/api/v1/pods", headers=headers)[0] == 403
    world.ask("DELETE", f"/apis/{RBAC}/v1/namespaces/default/rolebindings/r")
    assert world.ask("GET", PODS, headers=headers)[0] == 403


def test_resource_names_and_subresources_are_told_apart() -> None:
    world = RbacWorld()
    headers = world.account()
    world.grant(
        [
            rule("", ["configmaps"], ["get", "list"], resourceNames=["one"]),
            rule("apps", ["*/scale"], ["get"]),
        ]
    )
    base = "/api/v1/namespaces/default/configmaps"
    assert world.ask("GET", f"{base}/one", headers=headers)[0] == 404
    assert world.ask("GET", f"{base}/two", headers=headers)[0] == 403
    assert world.ask("GET", base, headers=headers)[0] == 403
    assert world.ask("GET", f"{base}?fieldSelector=metadata.name=one", headers=headers)[0] == 200
    deployment = "/apis/apps/v1/namespaces/default/deployments/d"
    assert world.ask("GET", deployment, headers=headers)[0] == 403
    assert world.ask("GET", f"{deployment}/scale", headers=headers)[0] == 404


def test_a_binding_to_a_role_of_the_server_grants_what_the_role_shows() -> None:
    world = RbacWorld()
    headers = world.account()
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "User", "name": ACCOUNT, "apiGroup": RBAC}
    binding = {"metadata": {"name": "v"}, "roleRef": reference, "subjects": [subject]}
    world.post(f"/apis/{RBAC}/v1/namespaces/default/rolebindings", binding)
    assert allowed(world, headers, resource="pods", verb="list")
    assert not allowed(world, headers, resource="secrets", verb="get")
    status, view = world.ask("GET", f"/apis/{RBAC}/v1/clusterroles/view")
    assert (status, view["metadata"]["name"]) == (200, "view")
    assert any("pods" in rule["resources"] for rule in view["rules"])
    assert not any("secrets" in rule["resources"] for rule in view["rules"])


def test_a_role_of_the_server_that_is_deleted_grants_nothing() -> None:
    world = RbacWorld()
    headers = world.account()
    assert world.ask("GET", "/apis", headers=headers)[0] == 200
    assert world.ask("DELETE", f"/apis/{RBAC}/v1/clusterroles/system:discovery")[0] == 200
    assert world.ask("GET", "/apis", headers=headers)[0] == 403


def allowed(world: RbacWorld, headers: Mapping[str, str], **attributes: str) -> bool:
    spec = {"resourceAttributes": {"namespace": "default", **attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(world.post(path, {"spec": spec}, headers)["status"]["allowed"])


def test_nobody_grants_what_they_do_not_hold() -> None:
    world = RbacWorld()
    headers = world.account()
    world.grant([rule(RBAC, ["roles"], ["create"]), rule("", ["pods"], ["get"])])
    roles = f"/apis/{RBAC}/v1/namespaces/default/roles"
    held = {"metadata": {"name": "held"}, "rules": [rule("", ["pods"], ["get"])]}
    assert world.ask("POST", roles, held, headers)[0] == 201
    more = {"metadata": {"name": "more"}, "rules": [rule("", ["pods"], ["get", "delete"])]}
    status, answer = world.ask("POST", roles, more, headers)
    assert status == 403
    assert answer["message"].endswith(
        'not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'
    )


def test_a_refusal_names_the_roles_that_do_not_exist() -> None:
    world = RbacWorld()
    headers = world.account()
    bindings = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"
    subject = {"kind": "ServiceAccount", "name": "sa", "namespace": "default"}
    for name, kind, role in (("a", "Role", "r"), ("b", "Role", "r"), ("c", "ClusterRole", "q")):
        reference = {"apiGroup": RBAC, "kind": kind, "name": role}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        world.post(bindings, body)
    missing = (
        'role.rbac.authorization.k8s.io "r" not found, '
        'clusterrole.rbac.authorization.k8s.io "q" not found'
    )
    status, answer = world.ask("GET", PODS, headers=headers)
    assert status == 403
    assert answer["message"].endswith(f'in the namespace "default": RBAC: [{missing}]')
    reviews = "/apis/authorization.k8s.io/v1"
    for namespace, told in (("default", {"reason": f"RBAC: [{missing}]"}), ("other", {})):
        asked = {"verb": "get", "resource": "pods", "namespace": namespace}
        spec = {"resourceAttributes": asked}
        own = world.post(f"{reviews}/selfsubjectaccessreviews", {"spec": spec}, headers)
        assert own["status"] == {"allowed": False, **told}
    rules = world.post(
        f"{reviews}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, headers
    )
    assert rules["status"]["evaluationError"] == f"[{missing}]"
    world.grant([rule("", ["pods"], ["list"])])
    assert world.ask("GET", PODS, headers=headers)[0] == 200
    world.ask("DELETE", f"{bindings}/c")
    assert world.ask("GET", f"{PODS}/a", headers=headers)[1]["message"].endswith('"default"')


def test_a_local_review_is_about_its_own_namespace() -> None:
    world = RbacWorld()
    path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
    spec = {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    status, answer = world.ask("POST", path, {"spec": spec})
    assert status == 422
    assert answer["message"].endswith(': Invalid value: "": must match metadata.namespace')
    spec["resourceAttributes"] = {"verb": "get", "resource": "pods", "namespace": "default"}
    answer = world.post(path, {"spec": spec})
    assert answer["metadata"] == {"namespace": "default"}
    assert answer["status"] == {"allowed": False}


def test_impersonation_needs_permission_and_then_counts() -> None:
    world = RbacWorld()
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = world.post(review, {}, {"impersonate-user": ACCOUNT})
    assert answer["status"]["userInfo"] == {
        "username": ACCOUNT,
        "groups": [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ],
    }
    assert world.ask("GET", PODS, headers={"impersonate-user": "jane"})[0] == 403
    headers = {**world.account(), "impersonate-user": "jane"}
    status, refused = world.ask("GET", PODS, headers=headers)
    assert status == 403
    assert refused["message"] == (
        f'users "jane" is forbidden: User "{ACCOUNT}" cannot impersonate resource "users" in API '
        'group "" at the cluster scope'
    )


def test_a_review_needs_exactly_one_kind_of_attributes() -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert RbacWorld().ask("POST", path, {"spec": {}})[0] == 422


@pytest.mark.parametrize(
    ("granted", "status"),
    [([], 422), ([rule("resource.k8s.io", ["resourceclaims/binding"], ["patch"])], 200)],
)
def test_writing_reservations_needs_the_binding_permission_in_the_whole_cluster(
    granted: list[Object], status: int
) -> None:
    world = RbacWorld()
    headers = world.account()
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    world.post(claims, {"metadata": {"name": "c"}, "spec": {"devices": {}}})
    base = rule("resource.k8s.io", ["resourceclaims/status", "resourceclaims"], ["patch", "get"])
    world.grant([base, *granted], cluster=True)
    body: Object = {"status": {"allocation": {"devices": {"results": []}}}}
    merge = {**headers, "content-type": "application/merge-patch+json"}
    assert world.ask("PATCH", f"{claims}/c/status", body, merge)[0] == status
