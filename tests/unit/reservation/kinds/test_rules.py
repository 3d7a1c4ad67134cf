"""What a rule says about workloads, and what is wrong with a rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.reservation.kinds.rules import Rule, Verdict, judge, problems_of, rule_of
from claimctl.reservation.kinds.subjects import MOST_BYTES
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.workload_kinds import ChildKind, WorkloadKind, WorkloadKindSpec
from tests.support import extremes

PHASE = Rule(
    "x.io",
    "Thing",
    "things",
    idle="self.spec.suspend",
    ended="self.status.phase == 'Done'",
    pods="self.spec.pods",
)


def said(spec: Any, status: Any, generation: int = 1, rule: Rule = PHASE) -> Verdict:
    document = {"metadata": {"generation": generation}, "spec": spec, "status": status}
    return judge(rule, json.dumps(document).encode())


def test_a_rule_that_can_be_answered() -> None:
    spec = {"suspend": False, "pods": 3}
    assert said(spec, {"phase": "Going"}) == Verdict(False, False, 3)
    assert said(spec, {"phase": "Done"}) == Verdict(False, True, 3)
    assert said({"suspend": True}, {"phase": "Going"}) == Verdict(True, False)


def test_what_cannot_be_answered_is_said_with_its_field() -> None:
    verdict = said({"suspend": "yes"}, {})
    assert (verdict.idle, verdict.ended) == (None, None)
    assert verdict.problem == (
        "ended fails: no such key: phase; idle has the value 'yes', which is not true or false"
    )


DEEP = Rule("x.io", "Thing", "things", idle="self.spec.suspend && self.spec.x != 0")


@pytest.mark.parametrize("levels", extremes.DEPTHS)
@pytest.mark.parametrize("of", ["[", "{"])
def test_a_rule_says_nothing_about_a_workload_that_is_nested_too_deeply(
    levels: int, of: str
) -> None:
    spec = f'{{"suspend":true,"x":{extremes.nested(levels, of)}}}'
    verdict = judge(DEEP, f'{{"spec":{spec}}}'.encode())
    if levels < 99:
        assert verdict == Verdict(True, False)
    else:
        problem = "the workload is nested more than 100 levels deep"
        assert verdict == Verdict(None, None, problem=problem)


def test_what_a_rule_does_not_read_is_no_matter() -> None:
    spec = f'{{"suspend":true,"x":{extremes.nested(900)},"y":"{"y" * 1_000_000}"}}'
    document = f'{{"spec":{spec},"status":{{"phase":"Going"}},"more":{extremes.nested(500)}}}'
    assert judge(PHASE, document.encode()) == Verdict(True, False)


def test_a_rule_says_nothing_about_a_workload_that_is_too_large_for_it() -> None:
    verdict = said({"suspend": False, "x": "x" * MOST_BYTES}, {}, rule=DEEP)
    problem = "the fields of the workload that the rule reads have more than 262144 bytes"
    assert verdict == Verdict(None, None, problem=problem)
    slow = Rule("x.io", "Thing", "things", idle="self.spec.xs.map(x, self.spec.xs) == []")
    verdict = said({"xs": [1] * 16_000}, {}, rule=slow)
    assert verdict.problem == (
        "idle would take too long: 16006 values in the fields that the rule reads, 16000 in one "
        "list"
    )
    assert (verdict.idle, verdict.ended) == (None, False)


def test_a_number_of_pods_that_is_none_is_unknown() -> None:
    for pods in (-1, True, "3", 1.5, None):
        assert said({"suspend": False, "pods": pods}, {"phase": ""}).pods is None


@pytest.mark.parametrize("observed", [1, "1"], ids=["number", "text of an Argo Rollout"])
def test_while_the_status_is_behind_only_expressions_over_the_spec_count(observed: object) -> None:
    behind = {"phase": "Done", "observedGeneration": observed}
    assert said({"suspend": True}, behind, generation=2) == Verdict(True, False, behind=True)
    assert said({"suspend": True}, behind, generation=1) == Verdict(True, True)
    for unknown in ({}, {"observedGeneration": "7d4f8b"}, {"observedGeneration": "9" * 9000}):
        status = {"phase": "Done", **unknown}
        assert said({"suspend": True}, status, generation=2) == Verdict(True, True)


def test_while_the_status_is_behind_no_ordinal_is_unwanted_by_it() -> None:
    rule = Rule("x.io", "Thing", "things", ordinals=("self.status.shards", "self.spec.size"))
    status = {"shards": 0, "observedGeneration": 1}
    assert said({"size": 2}, status, generation=2, rule=rule).ordinals == (None, 2)
    assert said({"size": 2}, status, generation=1, rule=rule).ordinals == (0, 2)


def test_without_expressions_a_workload_always_wants_pods() -> None:
    assert said({}, {}, rule=Rule("x.io", "Thing", "things")) == Verdict(False, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["Done", "", "x"]),
    lambda parts: (
        st.lists(parts, max_size=2)
        | st.dictionaries(st.sampled_from(["phase", "suspend", "pods"]), parts, max_size=3)
    ),
    max_leaves=6,
)


@given(JSON, JSON, st.integers(0, 2))
def test_no_object_makes_a_rule_say_more_than_is_there(spec: Any, status: Any, seen: int) -> None:
    """Whatever a status is, the end is said only of the phase that means it."""
    if isinstance(status, dict) and seen:
        status = {**status, "observedGeneration": seen}
    verdict = said(spec, status, generation=2)
    done = isinstance(status, dict) and status.get("phase") == "Done" and seen != 1
    assert verdict.ended is not True or done
    idle = isinstance(spec, dict) and spec.get("suspend") is True
    assert (verdict.idle is True) == idle
    assert bool(verdict.problem) == (verdict.idle is None or verdict.ended is None)


def kind(name: str = "things.x.io", **spec: Any) -> WorkloadKind:
    return WorkloadKind(
        metadata=ObjectMeta(name=name),
        spec=WorkloadKindSpec(group="x.io", kind="Thing", **spec),
    )


def test_the_rule_of_a_document() -> None:
    document = kind(idle="self.spec.suspend", children=(ChildKind(group="batch", kind="Job"),))
    rule = rule_of(document, "things.x.io")
    assert (rule.key, rule.plural) == (("x.io", "Thing"), "things")
    assert (rule.idle, rule.children) == ("self.spec.suspend", (("batch", "Job"),))


@pytest.mark.parametrize(
    ("document", "field", "problem"),
    [
        (kind("thing"), "metadata.name", "'thing' is not the plural of the kind, a dot, and x.io"),
        (kind("a.things.x.io"), "metadata.name", "'a.things.x.io' is not the plural"),
        (kind(idle="self.spec."), "spec.idle", "is not CEL: "),
        (kind(idle="true"), "spec.idle", "does not use self"),
        (kind(ended="object.status == 1"), "spec.ended", "does not use self"),
        (kind(pods="nothing(self)"), "spec.pods", "fails: Undefined variable or function"),
        (kind(ended="!has(self.status.x)"), "spec.ended", "is true for a workload that has"),
    ],
)
def test_a_rule_that_is_wrong_names_its_field(
    document: WorkloadKind, field: str, problem: str
) -> None:
    ((where, text),) = problems_of(document)
    assert where == field
    assert text.startswith(problem)


def test_a_rule_that_is_right() -> None:
    right = kind(idle="self.spec.suspend", ended="self.status.phase == 'Done'", pods="self.spec.n")
    assert list(problems_of(right)) == []
