"""What becomes of a kind, and what its WorkloadKind says. The rest is in the end-to-end tests."""

from __future__ import annotations

from claimctl.controller.caches.kinds import KindState
from claimctl.controller.kind_follower import status_of
from claimctl.controller.kind_states import missing_right
from claimctl.reservation.kinds.rules import rule_of
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource
from claimctl.wire.workload_kinds import WorkloadKind, WorkloadKindSpec
from claimctl.wire.workloads import CustomWorkload
from tests.support.builders import NOW, after

THINGS = Resource("x.io", "v1", "things", "Thing", CustomWorkload)


def document(name: str = "things.x.io", group: str = "x.io", kind: str = "Thing") -> WorkloadKind:
    return WorkloadKind(
        metadata=ObjectMeta(name=name, generation=3), spec=WorkloadKindSpec(group=group, kind=kind)
    )


USED = KindState(rule_of(document(), "WorkloadKind things.x.io"), THINGS)


def test_the_status_of_a_kind_in_use() -> None:
    status = status_of(document(), USED, NOW)
    (ready,) = status.conditions
    assert (status.served, status.version, status.permitted) == (True, "v1", True)
    assert (ready.status, ready.reason, status.observed_generation) == ("True", "RuleInUse", 3)


def test_the_status_names_the_problem() -> None:
    right = missing_right(THINGS, ["watch"])
    state = KindState(USED.rule, THINGS, problem=right)
    status = status_of(document(), state, NOW)
    assert (status.served, status.permitted, status.conditions[0].message) == (True, False, right)
    assert "watch things.x.io" in right
    assert "claimctl.io/aggregate-to-controller" in right


def test_the_time_of_the_condition_stays_while_its_status_does() -> None:
    first = status_of(document(), USED, NOW)
    kept = WorkloadKind(metadata=document().metadata, spec=document().spec, status=first)
    assert status_of(kept, USED, after(60)) == first


def test_a_rule_that_is_not_used_says_so() -> None:
    second = status_of(document("thing.x.io"), USED, NOW)
    assert second.conditions[0].message == "WorkloadKind things.x.io describes the same kind"
    built_in = status_of(document("jobs.batch", "batch", "Job"), None, NOW)
    assert "cannot be replaced" in built_in.conditions[0].message
