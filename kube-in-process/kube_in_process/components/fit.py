"""Which nodes a pod may use, and the scheduler's reasons against others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kube_in_process.components.objects import labels, meets, name
from kube_in_process.objects import Object

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def reason_against(pod: Object, node: Object, version: tuple[int, int]) -> str:
    """The reason of the first scheduler filter that refuses the node; '' if none does."""
    spec = node.get("spec") or {}
    tolerations = pod["spec"].get("tolerations") or ()
    if spec.get("unschedulable") and not tolerated(UNSCHEDULABLE_TAINT, tolerations):
        return "node(s) were unschedulable"
    taint = untolerated(spec.get("taints") or (), tolerations)
    if taint is not None and version >= (1, 34):
        return "node(s) had untolerated taint(s)"
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not selects(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def untolerated(
    taints: Iterable[Mapping[str, Any]], tolerations: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The first taint that the tolerations do not cover."""
    wanted = tuple(tolerations)
    for taint in taints:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated(taint, wanted):
            return taint
    return None


def tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key")
    if key and key != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def selects(pod: Object, node: Object) -> bool:
    """Whether the node matches ``spec.nodeSelector`` and the required node affinity."""
    present = labels(node)
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(present.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return node_matches(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), node)


def node_matches(selector: Mapping[str, Any] | None, node: Object) -> bool:
    """Whether a core/v1 NodeSelector matches the node; None matches every node."""
    if selector is None:
        return True
    fields = {"metadata.name": name(node)}
    return any(_term(term, labels(node), fields) for term in selector["nodeSelectorTerms"])


def term_matches(term: Mapping[str, Any], node: Object) -> bool:
    """Whether one term of a node selector matches the node."""
    return _term(term, labels(node), {"metadata.name": name(node)})


def _term(term: Mapping[str, Any], present: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or ()
    by_field = term.get("matchFields") or ()
    if not expressions and not by_field:
        return False
    return all(meets(expression, present) for expression in expressions) and all(
        meets(expression, fields) for expression in by_field
    )


def summary(reasons: Iterable[str]) -> str:
    """The reasons with their counts, in the scheduler's order: '2 node(s) were unschedulable'."""
    counts: dict[str, int] = {}
    for text in reasons:
        counts[text] = counts.get(text, 0) + 1
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
