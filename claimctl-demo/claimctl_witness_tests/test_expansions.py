"""What the witness lets a DowngradePlan take out of a claim, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.storage.store import Address, Author

from claimctl_witness.witness import (
    LISTED_UNFIT,
    LISTED_WITHOUT_HOLD,
    REMOVED_FOREIGN,
    UNRECORDED,
)
from claimctl_witness_tests.past import ALLOCATED, US, Past

PLAN = Address("claimctl.io", "downgradeplans", "", "claimctl")
CLAIM = Address("resource.k8s.io", "resourceclaims", "ml", "slice")
SCHEDULER, ADMIN = "system:kube-scheduler", "admin"

Entry = dict[str, Any]
MADE_FOR: Entry = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "d"}
GROUP: Entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
THING: Entry = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
POD: Entry = {"resource": "pods", "name": "train-0", "uid": "p"}


class PlansStory(Past):
    """A claim that somebody else made for a Deployment whose pod runs, and plans about it."""

    def __init__(self, *, shared: bool = True) -> None:
        super().__init__()
        self.shared = shared
        self.plans = 0
        self.listed()
        spec = {
            "nodeName": "n1",
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
        }
        meta = {"namespace": "ml", "name": "train-0", "uid": "p"}
        pod = {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}
        self.store.put(Address("", "pods", "ml", "train-0"), pod, Author("kubelet", "patch"))
        self.foreign_group()

    def foreign_group(self) -> None:
        body = {"metadata": {"namespace": "ml", "name": "g", "uid": "g"}}
        where = Address("scheduling.k8s.io", "podgroups", "ml", "g")
        self.store.put(where, body, Author("somebody", "create"))

    def listed(self, *entries: Entry, by: str = SCHEDULER) -> PlansStory:
        allocation: dict[str, Any] = {**ALLOCATED["allocation"]}
        if self.shared:
            allocation["reservedForAnyPod"] = True
        claim = {
            "metadata": {"namespace": "ml", "name": "slice", "uid": "c"},
            "spec": {"reservedFor": MADE_FOR},
            "status": {"allocation": allocation, "reservedFor": list(entries)},
        }
        self.store.put(CLAIM, claim, Author(by, "patch", "status"))
        return self

    def recorded(self, *entries: Entry, claim: str = "c", version: int | None = None) -> PlansStory:
        """On record under the present version, if no other is given."""
        record = {
            "namespace": "ml",
            "name": "slice",
            "uid": claim,
            "resourceVersion": str(self.store.revision if version is None else version),
            "replacedReferences": list(entries),
        }
        self.put_plan([record] if entries else [])
        return self

    def put_plan(self, claims: list[dict[str, Any]]) -> None:
        meta = {"name": "claimctl", "uid": f"plan-{self.plans}"}
        plan = {"metadata": meta, "status": {"claims": claims}}
        self.store.put(PLAN, plan, Author(US, "patch", "status"))

    def withdrawn(self) -> PlansStory:
        self.store.delete(PLAN, Author(ADMIN, "delete"))
        self.plans += 1
        return self

    def rules(self) -> list[str]:
        return [violation.rule for violation in self.violations()]


@pytest.mark.parametrize("entry", [MADE_FOR, GROUP], ids=["made for it", "a PodGroup"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "pods listed"])
def test_what_was_on_record_gives_way_to_pods(entry: Entry, shared: bool) -> None:
    story = PlansStory(shared=shared).listed(entry).recorded(entry)
    assert story.listed(POD, by=US).rules() == []


@pytest.mark.parametrize("entry", [MADE_FOR, GROUP], ids=["made for it", "a PodGroup"])
def test_what_was_not_on_record_is_not_claimctls_to_take(entry: Entry) -> None:
    story = PlansStory(shared=False).listed(entry).recorded().listed(POD, by=US)
    assert story.rules() == [REMOVED_FOREIGN]


def test_a_record_that_comes_after_the_write_comes_too_late() -> None:
    story = PlansStory().listed(MADE_FOR).recorded()
    version = story.store.revision - 1
    story.listed(POD, by=US).recorded(MADE_FOR, version=version)
    assert story.rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_a_record_is_of_one_version_of_the_list() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR).listed(MADE_FOR, GROUP)
    assert story.listed(POD, by=US).rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_a_record_is_of_one_claim() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR, claim="another")
    assert story.listed(POD, by=US).rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_being_on_record_makes_nothing_claimctls_that_the_feature_did_not_put_there() -> None:
    story = PlansStory().listed(MADE_FOR, THING).recorded(MADE_FOR, THING)
    assert story.listed(POD, by=US).rules() == [REMOVED_FOREIGN]


def test_a_plan_alone_allows_nothing() -> None:
    story = PlansStory().listed(MADE_FOR, THING).recorded(MADE_FOR)
    assert story.listed(MADE_FOR, POD, by=US).rules() == [REMOVED_FOREIGN]


def test_a_running_pod_may_not_be_taken_out_whatever_is_on_record() -> None:
    story = PlansStory().listed(MADE_FOR, POD).recorded(MADE_FOR, POD)
    assert REMOVED_FOREIGN in story.listed(by=US).rules()


def test_a_write_under_way_may_arrive_after_the_plan_has_gone_but_no_other() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR).withdrawn().listed(POD, by=US)
    story.listed(MADE_FOR).listed(POD, by=US)
    assert story.rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_a_write_under_way_may_arrive_when_the_next_plan_says_nothing_about_the_claim() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR).withdrawn()
    story.recorded().recorded(MADE_FOR, claim="another")
    assert story.listed(POD, by=US).rules() == []


def test_the_next_plan_has_the_last_word_about_a_claim() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR).withdrawn()
    story.recorded(MADE_FOR, version=1).listed(POD, by=US)
    assert story.rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_what_a_plan_has_taken_off_its_record_is_on_record_no_more() -> None:
    story = PlansStory().listed(MADE_FOR).recorded(MADE_FOR).recorded().listed(POD, by=US)
    assert story.rules() == [REMOVED_FOREIGN, UNRECORDED]


def test_claimctls_own_is_on_record_before_it_gives_way_to_running_pods() -> None:
    own = {**MADE_FOR, "uid": "own"}
    story = PlansStory().listed(POD).listed(POD, own, by=US)
    assert story.recorded(own).listed(POD, by=US).rules() == []
    story.listed(POD, own, by=US).listed(POD, by=US)
    assert story.rules() == [UNRECORDED]


def test_a_fence_takes_its_hold_out_of_a_claim_without_consumers() -> None:
    own = {**MADE_FOR, "uid": "own"}
    story = PlansStory().listed().listed(own, by=US)
    assert story.listed(by=US).rules() == []


def test_what_others_do_is_not_held_against_claimctl() -> None:
    assert PlansStory().listed(MADE_FOR, THING).listed(POD, by=ADMIN).rules() == []


def waiting_in_group(story: PlansStory, group: str) -> Entry:
    """The entry of a pod of this PodGroup that has no node yet."""
    meta = {"namespace": "ml", "name": "train-1", "uid": "q"}
    spec = {
        "schedulingGroup": {"podGroupName": group},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    }
    pod = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
    story.store.put(Address("", "pods", "ml", "train-1"), pod, Author("user", "create"))
    return {"resource": "pods", "name": "train-1", "uid": "q"}


@pytest.mark.parametrize(
    ("group", "expected"),
    [("g", []), ("another", [LISTED_WITHOUT_HOLD, LISTED_UNFIT])],
)
def test_pods_of_a_group_that_was_replaced_may_be_listed_later(
    group: str, expected: list[str]
) -> None:
    story = PlansStory(shared=False).listed(GROUP).recorded(GROUP).listed(POD, by=US)
    waiting = waiting_in_group(story, group)
    assert story.listed(POD, waiting, by=US).rules() == expected
