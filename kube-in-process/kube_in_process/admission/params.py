"""The bindings of a policy that concern a request, and the parameters of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube_in_process.admission.matching import matched_version
from kube_in_process.admission.request import GROUP, AdmissionRequest, AdmissionServer
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.storage.selectors import selects

_NOT_FOUND = (
    "failed to configure binding: no params found for policy binding with `Deny` "
    "parameterNotFoundAction"
)
_NO_NAMESPACE = (
    "failed to configure binding: cannot use namespaced paramRef in policy binding that matches "
    "cluster-scoped resources"
)


@dataclass(frozen=True, slots=True)
class Applied:
    """A policy for one binding and one parameter. ``problem``: they cannot be used, and why.
    Without a ``binding``, the policy itself cannot."""

    policy: Object
    version: str
    binding: Object | None = None
    params: Object | None = None
    problem: str = ""

    @property
    def spec(self) -> Object:
        spec: Object = self.policy["spec"]
        return spec

    @property
    def ignores_failures(self) -> bool:
        return bool(self.spec.get("failurePolicy", "Fail") == "Ignore")


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def applied(server: AdmissionServer, plural: str, request: AdmissionRequest) -> Iterator[Applied]:
    """Every policy of a kind that concerns a request, in the order of the names."""
    bindings = sorted(server.store.list(GROUP, f"{plural[:-3]}ybindings"), key=name_of)
    for policy in sorted(server.store.list(GROUP, plural), key=name_of):
        own = [binding for binding in bindings if binding["spec"]["policyName"] == name_of(policy)]
        version = None
        if own:
            version = matched_version(server, policy["spec"]["matchConstraints"], request)
        if version is not None:
            yield from _for_bindings(server, Applied(policy, version), own, request)


def _for_bindings(
    server: AdmissionServer, matched: Applied, bindings: list[Object], request: AdmissionRequest
) -> Iterator[Applied]:
    wanted = matched.spec.get("paramKind")
    kind = None
    if wanted:
        group, _, version = wanted["apiVersion"].rpartition("/")
        kind = server.kinds.by_kind(group, wanted["kind"])
        if kind is None or version not in kind.versions:
            where = f"{wanted['apiVersion']}, Kind={wanted['kind']}"
            text = f"failed to find resource referenced by paramKind: '{where}'"
            yield Applied(matched.policy, matched.version, None, None, _policy_problem(text))
            return
    for binding in bindings:
        chosen = binding["spec"].get("matchResources")
        if chosen is None or matched_version(server, chosen, request) is not None:
            yield from _for_params(server, matched, kind, binding, request)


def _policy_problem(text: str) -> str:
    return f"failed to configure policy: {text}"


def _for_params(
    server: AdmissionServer,
    matched: Applied,
    kind: Kind | None,
    binding: Object,
    request: AdmissionRequest,
) -> Iterator[Applied]:
    reference = binding["spec"].get("paramRef")
    if kind is None or reference is None:
        yield Applied(matched.policy, matched.version, binding)
        return
    namespace = ""
    if kind.namespaced:
        namespace = reference.get("namespace") or request.namespace
        if not namespace:
            yield Applied(matched.policy, matched.version, binding, None, _NO_NAMESPACE)
            return
    params = [
        stored
        for stored in sorted(server.store.list(*kind.storage, namespace), key=name_of)
        if _is_meant(reference, stored)
    ]
    for stored in params:
        shown = server.strategies.of(kind).outward(stored, kind, _version(matched))
        yield Applied(matched.policy, matched.version, binding, shown)
    if not params and reference.get("parameterNotFoundAction") == "Deny":
        yield Applied(matched.policy, matched.version, binding, None, _NOT_FOUND)


def _version(matched: Applied) -> str:
    return str(matched.spec["paramKind"]["apiVersion"].rpartition("/")[2])


def _is_meant(reference: Object, params: Object) -> bool:
    if reference.get("name"):
        return bool(reference["name"] == name_of(params))
    labels = params["metadata"].get("labels") or {}
    return selects(reference.get("selector") or {}, labels)
