"""Sequences of questions about the server: what it serves, and who may do what."""

from __future__ import annotations

from random import Random
from typing import Any

from judges.differential.exemplars import Exemplar
from judges.differential.mutations import bent
from judges.differential.recorder import Sequence
from judges.differential.sequences import namespace_step
from judges.differential.templates import Step

Object = dict[str, Any]
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPTS = ("application/json", "*/*", f"{_AGGREGATED},application/json")
_RBAC = "rbac.authorization.k8s.io"
_KNOWN_SECONDS = 0.5
"""Seconds until a real server's authorizer knows of a role: it reads roles from a watch."""
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "*", "odd")


def asking_sequence(rng: Random, kinds: tuple[Exemplar, ...], name: str) -> Sequence:
    steps = [namespace_step(name)]
    if rng.random() < 0.3:
        steps += [_discovery(rng, rng.choice(kinds)) for _ in range(10)]
    else:
        steps += [*_grant(rng, name), *(_review(rng, rng.choice(kinds), name) for _ in range(10))]
    return Sequence(name, tuple(steps))


def _discovery(rng: Random, kind: Exemplar) -> Step:
    group = f"/apis/{kind.group or 'apps'}"
    paths = (group, kind.root, kind.root, f"{group}/v9", "/apis/nosuch.example.com", "/api")
    path = rng.choice(paths)
    custom = kind.group == "claimctl.io"
    accepts = _ACCEPTS if custom else (*_ACCEPTS, "text/html")
    if path == "/api":
        accepts = ("application/json", "*/*", "text/html")
    headers = {"accept": rng.choice(accepts)} if rng.random() < 0.3 else {}
    return {"request": {"method": "GET", "path": path, "headers": headers}}


def _grant(rng: Random, name: str) -> list[Step]:
    """A role in the namespace and its binding to a user that no other sequence knows."""
    rule = {
        "apiGroups": [rng.choice(("", "apps", "resource.k8s.io", "*"))],
        "resources": rng.sample(("pods", "pods/status", "resourceclaims", "deployments", "*"), 2),
        "verbs": rng.sample(_VERBS, 3),
    }
    if rng.random() < 0.3:
        rule["resourceNames"] = ["a"]
    root = f"/apis/{_RBAC}/v1/namespaces/{name}"
    role = {"metadata": {"name": "r"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": f"user-{name}"}],
    }
    bound = {**_post(f"{root}/rolebindings", binding), "pause": _KNOWN_SECONDS}
    return [_post(f"{root}/roles", role), bound]


def _review(rng: Random, kind: Exemplar, name: str) -> Step:
    attributes: Object = {
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "verb": rng.choice(_VERBS),
        "namespace": rng.choice((name, name, name, "", "elsewhere")),
    }
    if rng.random() < 0.3:
        attributes["name"] = rng.choice(("a", "b"))
    if rng.random() < 0.3:
        attributes["subresource"] = rng.choice(("status", "scale"))
    spec: Object = {"resourceAttributes": attributes}
    if rng.random() < 0.1:
        spec = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
    plural, what = "selfsubjectaccessreviews", "SelfSubjectAccessReview"
    if rng.random() < 0.7:
        plural, what = "subjectaccessreviews", "SubjectAccessReview"
        spec["user"] = f"user-{name}"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": what, "spec": spec}
    path = f"/apis/authorization.k8s.io/v1/{plural}"
    return _post(path, bent(rng, body) if rng.random() < 0.2 else body)


def _post(path: str, body: Object) -> Step:
    return {"request": {"method": "POST", "path": path, "body": body}}
