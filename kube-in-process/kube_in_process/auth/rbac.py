"""RBAC: who may do what, by the stored roles and bindings and the built-in policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube_in_process.kinds.authorization import Attributes
from kube_in_process.objects import Object
from kube_in_process.storage.requests import MASTERS, Actor
from kube_in_process.storage.store import Revision, Store

Rule = Mapping[str, Any]

GROUP = "rbac.authorization.k8s.io"
PLURALS = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
_ACCOUNT = "system:serviceaccount:"
_NAMES = {"Role": "role", "ClusterRole": "clusterrole"}


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule that a user has; ``namespace`` is empty for rules of the whole cluster."""

    rule: Rule
    namespace: str
    reason: str


class Rbac:
    """An authorizer. It reads roles and bindings again after each change of one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy: _PolicyNow | None = None
        for plural in PLURALS:
            store.subscribe(self._changed, GROUP, plural)

    def _changed(self, revision: Revision) -> None:
        self._policy = None

    def allowed(self, attributes: Attributes) -> bool:
        return self.reason(attributes) is not None

    def reason(self, attributes: Attributes) -> str | None:
        """Why the request is allowed; None if it is not."""
        if MASTERS in attributes.actor.groups:
            return ""
        for grant in self.grants(attributes.actor, attributes.namespace):
            if covers(grant.rule, attributes):
                return grant.reason
        return None

    def trouble(self, attributes: Attributes) -> str:
        """The missing roles, in the words that a real server adds to a refusal (``Authorize`` in
        plugin/pkg/auth/authorizer/rbac)."""
        missing = self.missing_roles(attributes.actor, attributes.namespace)
        return f"RBAC: {missing}" if missing else ""

    def missing_roles(self, actor: Actor, namespace: str) -> str:
        """The roles that bindings of ``actor`` name and that do not exist; '' without any."""
        missing = self._current().missing(actor, namespace)
        texts = [f'{_NAMES[kind]}.{GROUP} "{name}" not found' for kind, name in missing]
        return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)

    def grants(self, actor: Actor, namespace: str) -> Iterator[Grant]:
        """Every rule that ``actor`` has in the cluster and in one namespace."""
        return self._current().grants(actor, namespace)

    def _current(self) -> _PolicyNow:
        if self._policy is None:
            self._policy = _PolicyNow(self._store)
        return self._policy


class AllowAll:
    """The authorizer of a cluster without authorization: every user may do everything."""

    def allowed(self, attributes: Attributes) -> bool:
        return True

    def reason(self, attributes: Attributes) -> str | None:
        return ""

    def trouble(self, attributes: Attributes) -> str:
        return ""

    def missing_roles(self, actor: Actor, namespace: str) -> str:
        return ""

    def grants(self, actor: Actor, namespace: str) -> Iterator[Grant]:
        yield Grant({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, "", "")
        yield Grant({"verbs": ["*"], "nonResourceURLs": ["*"]}, "", "")


class _PolicyNow:
    """The roles and bindings at one moment."""

    def __init__(self, store: Store) -> None:
        listed = {plural: store.list(GROUP, plural) for plural in PLURALS}
        self._roles = {
            _place(role["metadata"]): role for role in (*listed["roles"], *listed["clusterroles"])
        }
        self._everywhere = _BySubject(listed["clusterrolebindings"])
        self._namespaced: dict[str, list[Object]] = {}
        for binding in listed["rolebindings"]:
            self._namespaced.setdefault(binding["metadata"]["namespace"], []).append(binding)

    def grants(self, actor: Actor, namespace: str) -> Iterator[Grant]:
        for binding, subject, scope in self._bound(actor, namespace):
            yield from self._granted(binding, subject, scope)

    def missing(self, actor: Actor, namespace: str) -> dict[tuple[str, str], None]:
        """The kind and name of each role that a binding of ``actor`` names in vain."""
        roles: dict[tuple[str, str], None] = {}
        for binding, _, scope in self._bound(actor, namespace):
            role = binding["roleRef"]
            if self._role(role, scope) is None:
                roles[role["kind"], role["name"]] = None
        return roles

    def _bound(self, actor: Actor, namespace: str) -> Iterator[tuple[Object, Object, str]]:
        """Each binding of ``actor``, its first subject that is the actor, and its namespace."""
        local = self._namespaced.get(namespace, ())
        for binding, scope in (
            *((binding, "") for binding in self._everywhere.of(actor)),
            *((binding, namespace) for binding in local),
        ):
            for subject in binding.get("subjects") or ():
                if _is(subject, actor, scope):
                    yield binding, subject, scope
                    break

    def _granted(self, binding: Object, subject: Object, namespace: str) -> Iterator[Grant]:
        role, kind = binding["roleRef"], "RoleBinding" if namespace else "ClusterRoleBinding"
        shown = _shown(binding["metadata"]["name"], namespace)
        reason = (
            f'RBAC: allowed by {kind} {shown} of {role["kind"]} "{role["name"]}" to '
            f"{subject['kind']} {_shown(subject['name'], subject.get('namespace', ''))}"
        )
        for rule in (self._role(role, namespace) or {}).get("rules") or ():
            yield Grant(rule, namespace, reason)

    def _role(self, reference: Object, namespace: str) -> Object | None:
        return self._roles.get(
            (namespace if reference["kind"] == "Role" else "", reference["name"])
        )


class _BySubject:
    """ClusterRoleBindings by the names of their subjects: there are many, for few users each."""

    def __init__(self, bindings: Sequence[Object]) -> None:
        self._bindings = bindings
        self._numbers: dict[tuple[str, str], list[int]] = {}
        for number, binding in enumerate(bindings):
            for subject in binding.get("subjects") or ():
                self._numbers.setdefault(_key(subject), []).append(number)

    def of(self, actor: Actor) -> list[Object]:
        """The bindings of a user and of the user's groups, in the order of their names."""
        keys = [("", actor.user), *(("Group", group) for group in actor.groups)]
        numbers = {number for key in keys for number in self._numbers.get(key, ())}
        return [self._bindings[number] for number in sorted(numbers)]


def _key(subject: Object) -> tuple[str, str]:
    """How ``_BySubject`` finds a subject: by its group, or by the name of its user."""
    if subject["kind"] == "Group":
        return "Group", subject["name"]
    if subject["kind"] == "User":
        return "", subject["name"]
    return "", f"{_ACCOUNT}{subject.get('namespace') or ''}:{subject['name']}"


def _place(meta: Object) -> tuple[str, str]:
    return meta.get("namespace", ""), meta["name"]


def _shown(name: str, namespace: str) -> str:
    return f'"{name}/{namespace}"' if namespace else f'"{name}"'


def _is(subject: Object, actor: Actor, namespace: str) -> bool:
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return bool(name == actor.user)
    if kind == "Group":
        return name in actor.groups
    return actor.user == f"{_ACCOUNT}{subject.get('namespace') or namespace}:{name}"


def covers(rule: Rule, attributes: Attributes) -> bool:
    """Whether a rule allows a request."""
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        return any(_matches(url, attributes.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("apiGroups"), attributes.group)
        and _has_resource(rule.get("resources") or (), attributes)
        and (not names or attributes.name in names)
    )


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return "*" in (values or ()) or wanted in (values or ())


def _has_resource(resources: Sequence[str], attributes: Attributes) -> bool:
    sub = attributes.subresource
    wanted = f"{attributes.plural}/{sub}" if sub else attributes.plural
    return _has(resources, wanted) or bool(sub and f"*/{sub}" in resources)


def _matches(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith("*") else url == path
