"""Workloads under their rules."""

from __future__ import annotations

from claimctl.reservation.facts.workloads import JudgedWorkload, judged, rule_for, verdict_of
from claimctl.reservation.kinds.rules import Rule, Verdict
from claimctl.wire.base import decode
from claimctl.wire.workloads import CustomWorkload, Deployment, ScalableSpec

RULE = Rule("x.io", "Thing", "things", idle="self.spec.size == 0", pods="self.spec.size")
DOCUMENT = b"""{"apiVersion": "x.io/v1", "kind": "Thing",
  "metadata": {"name": "t", "uid": "u", "labels": {"a": "b"},
               "annotations": {"claimctl.io/reserve": "*", "other": "x"}},
  "spec": {"size": 4, "long": "text"}, "status": null}"""


def thing() -> JudgedWorkload:
    return judged(decode(DOCUMENT, CustomWorkload), RULE)


def test_a_judged_workload_keeps_its_verdict_and_what_claimctl_reads() -> None:
    kept = thing()
    assert verdict_of(kept) == Verdict(False, False, 4)
    assert rule_for(kept) is RULE
    assert kept.metadata.annotations == {"claimctl.io/reserve": "*"}
    assert (kept.metadata.labels, bytes(kept.spec)) == (None, b"{}")


def test_an_object_cannot_bring_its_own_verdict() -> None:
    forged = DOCUMENT.replace(b'"kind"', b'"verdict": {"ended": true}, "kind"')
    assert verdict_of(judged(decode(forged, CustomWorkload), RULE)).ended is False


def test_a_workload_without_a_rule_says_nothing() -> None:
    verdict = verdict_of(decode(DOCUMENT, CustomWorkload))
    assert (verdict.idle, verdict.ended) == (None, None)


def test_a_kind_with_a_struct_has_its_shipped_rule() -> None:
    deployment = Deployment(spec=ScalableSpec(replicas=2))
    assert verdict_of(deployment) == Verdict(False, False, 2)
    assert rule_for(deployment).children == (("apps", "ReplicaSet"),)
