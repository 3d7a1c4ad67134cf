"""Workloads under their rules: from an object to what its rule says about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from claimctl.reservation.kinds.rules import Rule, Verdict, judge
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.base import encode
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import PodTemplateSpec
from claimctl.wire.resources import REPLICASETS, WORKLOADS
from claimctl.wire.workloads import CustomWorkload, ReplicaSet, Workload

_RULES: Mapping[type[Any], Rule] = {
    resource.type: shipped_rules()[resource.group, resource.kind]
    for resource in (*WORKLOADS.values(), REPLICASETS)
}
"""The rules of the kinds that claimctl decodes into structs of their own."""
_OUR_PREFIX = "claimctl.io/"


class JudgedWorkload(CustomWorkload, frozen=True, kw_only=True):
    """A workload with what its rule says about it, and without its spec and status."""

    verdict: Verdict = Verdict(idle=None, ended=None)
    rule: Rule = Rule("", "", "")


def judged(workload: CustomWorkload, rule: Rule) -> JudgedWorkload:
    """The workload under the rule. It keeps only those parts of the metadata that matter."""
    meta = workload.metadata
    verdict = judge(
        rule,
        encode({"metadata": meta, "spec": workload.spec, "status": workload.status}),
    )
    ours = {
        key: value for key, value in (meta.annotations or {}).items() if key.startswith(_OUR_PREFIX)
    }
    slim = replace(meta, annotations=ours or None, labels=None)
    return JudgedWorkload(
        api_version=workload.api_version,
        kind=rule.kind,
        metadata=slim,
        verdict=verdict,
        rule=rule,
    )


def rule_for(workload: Workload | ReplicaSet) -> Rule:
    """The rule by which the workload is judged."""
    return workload.rule if isinstance(workload, JudgedWorkload) else _RULES[type(workload)]


def verdict_of(workload: Workload | ReplicaSet) -> Verdict:
    """What the rule of its kind says about the workload."""
    if isinstance(workload, JudgedWorkload):
        return workload.verdict
    if isinstance(workload, CustomWorkload):
        return Verdict(idle=None, ended=None, problem="no rule for its kind was applied")
    document = {
        "metadata": _seen(workload.metadata),
        "spec": replace(workload.spec, template=_NO_TEMPLATE),
        "status": getattr(workload, "status", None),
    }
    return judge(_RULES[type(workload)], encode(document))


_NO_TEMPLATE = PodTemplateSpec()


def _seen(meta: ObjectMeta) -> ObjectMeta:
    """The metadata that a shipped rule may read. Most workloads have equal ones, and so share a
    verdict."""
    return ObjectMeta(generation=meta.generation, deletion_timestamp=meta.deletion_timestamp)
