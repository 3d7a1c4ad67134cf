"""Splits the rights in rbac/ into single permissions, and records which a controller uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from kube_in_process.auth.authn import AccessControl
from kube_in_process.auth.rbac import covers
from kube_in_process.cluster import Cluster
from kube_in_process.kinds.authorization import Attributes, Authorizer
from kube_in_process.options import Authorization, ClusterOptions

from claimctl.kube.errors import AlreadyExists
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e.harness import CONTROLLER_USER, Stage

RBAC = Path(__file__).parents[2] / "rbac"
ALL_RIGHTS = ("controller.yaml", "templates.yaml", "template-injection.yaml")
ACCOUNTS = "/api/v1/namespaces/claimctl-system/serviceaccounts"
ACCOUNT = f"{ACCOUNTS}/claimctl-controller"
_GROUP = "rbac.authorization.k8s.io"
RESOURCES = {
    "ClusterRole": Resource(
        _GROUP, "v1", "clusterroles", "ClusterRole", ObjectHeader, namespaced=False
    ),
    "ClusterRoleBinding": Resource(
        _GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", ObjectHeader, namespaced=False
    ),
    "Role": Resource(_GROUP, "v1", "roles", "Role", ObjectHeader),
    "RoleBinding": Resource(_GROUP, "v1", "rolebindings", "RoleBinding", ObjectHeader),
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount", ObjectHeader),
}
Body = dict[str, Any]


def strict(options: ClusterOptions) -> ClusterOptions:
    """The same cluster, with RBAC."""
    return replace(options, authorization=Authorization.RBAC)


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource. Namespace "" means the whole cluster."""

    role: str
    namespace: str
    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()
    path: str = ""
    """A path such as /metrics, instead of a resource."""

    def __str__(self) -> str:
        if self.path:
            return f"{self.role}: {self.verb} {self.path}"
        where = f" in {self.namespace}" if self.namespace else ""
        named = f" {list(self.names)}" if self.names else ""
        return f"{self.role}: {self.verb} {self.resource}.{self.group}{named}{where}"

    def rule(self) -> Body:
        if self.path:
            return {"nonResourceURLs": [self.path], "verbs": [self.verb]}
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": [self.verb],
            **({"resourceNames": list(self.names)} if self.names else {}),
        }

    def allows(self, attributes: Attributes) -> bool:
        here = self.namespace in ("", attributes.namespace)
        return here and covers(self.rule(), attributes)


@cache
def _texts(file: str) -> tuple[str, ...]:
    """The documents of a file as JSON: each scenario reads them, and YAML is slow."""
    return tuple(map(json.dumps, yaml.safe_load_all((RBAC / file).read_text())))


def bodies(*files: str) -> Iterator[Body]:
    for file in files:
        yield from map(json.loads, _texts(file))


def permissions(*files: str) -> list[Permission]:
    """Every permission that the roles in ``files`` grant."""
    paths = [
        Permission(body["metadata"]["name"], "", "", "", verb, path=path)
        for body in bodies(*files)
        for rule in body.get("rules", ())
        for path in rule.get("nonResourceURLs", ())
        for verb in rule["verbs"]
    ]
    return paths + [
        Permission(
            body["metadata"]["name"],
            body["metadata"].get("namespace", ""),
            group,
            resource,
            verb,
            tuple(rule.get("resourceNames", ())),
        )
        for body in bodies(*files)
        if "rules" in body
        for rule in body["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


async def grant(stage: Stage, given: list[Permission], *files: str) -> None:
    """Apply the files, with only the permissions ``given`` in their roles."""
    for body in bodies(*files):
        resource = RESOURCES.get(body["kind"])
        if resource is None:
            continue
        meta = body["metadata"]
        if "rules" in body:
            place = (meta["name"], meta.get("namespace", ""))
            kept = [each.rule() for each in given if (each.role, each.namespace) == place]
            body = {**body, "rules": kept}
        # The ServiceAccount may exist already: controllers need it to connect.
        with suppress(AlreadyExists):
            await stage.client.create(resource, body, meta.get("namespace", ""))
    if "template-injection.yaml" in files:
        await stage.client.create(RESOURCES["ClusterRoleBinding"], _INJECTION)


_INJECTION: Body = {
    "metadata": {"name": "claimctl-template-injection"},
    "roleRef": {
        "apiGroup": _GROUP,
        "kind": "ClusterRole",
        "name": "claimctl-template-injection",
    },
    "subjects": [
        {
            "kind": "ServiceAccount",
            "name": "claimctl-controller",
            "namespace": "claimctl-system",
        }
    ],
}
"""The binding that the file tells administrators to create."""


@dataclass(slots=True)
class Register:
    """An authorizer that records what an account was allowed and what it was refused."""

    inner: Authorizer
    user: str = CONTROLLER_USER
    used: dict[Attributes, None] = field(default_factory=dict)
    refused: dict[Attributes, None] = field(default_factory=dict)

    def allowed(self, attributes: Attributes) -> bool:
        allowed = self.inner.allowed(attributes)
        if attributes.actor.user == self.user:
            (self.used if allowed else self.refused)[attributes] = None
        return allowed

    def trouble(self, attributes: Attributes) -> str:
        return self.inner.trouble(attributes)


def watched(cluster: Cluster, user: str = CONTROLLER_USER) -> Register:
    """Insert a ``Register`` of one user before a cluster's authorizer."""
    register = Register(cluster.api.authorizer, user)
    cluster.api.authorizer = register
    guard = cluster.handler.guard
    assert isinstance(guard, AccessControl)
    guard.authorizer = register
    return register


@dataclass(frozen=True, slots=True)
class Bearer:
    """A transport that adds a token to its requests."""

    inner: Transport
    token: str

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        carried = {**headers, "authorization": f"Bearer {self.token}"}
        return await self.inner.send(method, path, query, carried, body)


async def as_account(stage: Stage, account: str = "claimctl-controller") -> Transport:
    """A connection with the token of a ServiceAccount (TokenRequest)."""
    cluster = stage.embedded
    path = f"{ACCOUNTS}/{account}/token"
    answer = await cluster.transport().send("POST", path, (), _JSON, _A_DAY)
    body = json.loads(b"".join([part async for part in answer.body]))
    return Bearer(cluster.handler, body["status"]["token"])


_JSON = {"content-type": "application/json"}
_A_DAY = b'{"spec":{"expirationSeconds":86400}}'
