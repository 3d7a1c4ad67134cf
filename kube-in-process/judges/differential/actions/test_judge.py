"""The rules of comparison, and the repeatability of random stories."""

from __future__ import annotations

from typing import Any

import pytest

from judges.differential.actions.chance import THEMES, by_chance
from judges.differential.actions.clusters import Seen
from judges.differential.actions.judge import differences, turns
from judges.differential.actions.level import level_message, level_text
from judges.differential.actions.play import PlayedStory, Segment
from judges.differential.actions.recording import merge_patch, merged
from judges.differential.actions.rehearsal import on_embedded
from judges.differential.actions.story import read

VERSION = (1, 36)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([1, 2, 3], [1, 3]),
        ([1, 3, 2, 3], [1, 3, 2, 3]),
        ([None, 2, None], [None, 2, None]),
        (["a", "b", "c"], ["a", "b", "c"]),
        ([2, 2, 2], [2]),
    ],
)
def test_counters_keep_their_turning_points_and_words_every_change(
    values: list[Any], kept: list[Any]
) -> None:
    assert turns(values) == kept


def test_what_the_scheduler_says_of_other_stories_nodes_is_left_out() -> None:
    text = "0/72 nodes are available: 3 cannot allocate all claims, 69 {}. still not schedulable"
    theirs = level_message(text.format("node(s) didn't satisfy plugin(s) [NodeAffinity]"))
    assert theirs == "0/* nodes are available: 3 cannot allocate all claims. still not schedulable"


@pytest.mark.parametrize(
    ("text", "levelled"),
    [
        ("web-6ffc66784b-s2482", "web-*-*"),
        ("s24-node-0", "ns-node-*"),
        ("claim s24/shared of s24.tpu.example.com", "claim ns/shared of ns.tpu.example.com"),
    ],
)
def test_a_made_up_name_that_looks_like_a_namespace_is_none(text: str, levelled: str) -> None:
    assert level_text(text) == levelled


def test_a_merge_patch_leads_from_one_state_to_the_next() -> None:
    old = {"a": 1, "b": {"c": 1, "d": [1]}}
    new = {"b": {"d": [2], "e": {"f": 1}}}
    assert merged(old, merge_patch(old, new)) == new


@pytest.mark.parametrize("theme", THEMES)
def test_a_story_is_the_same_one_each_time_and_can_be_stored(theme: str) -> None:
    story = by_chance(7, 3, VERSION, True, theme)
    assert story == by_chance(7, 3, VERSION, True, theme)
    assert read(story.text()) == story


def test_two_plays_of_a_story_do_not_differ_and_two_stories_do() -> None:
    story = by_chance(7, 3, VERSION, True, "deployment")
    once, again = (on_embedded((VERSION, True), story, name) for name in ("s1", "s2"))
    assert differences(once, again) == []
    once.segments[-1].answers.append("500 something else")
    assert [difference.kind for difference in differences(once, again)] == ["answer 500/-"]


def _seen(kind: str, plain: str, obj: dict[str, Any], change: str = "MODIFIED") -> Seen:
    named = {"name": plain, "uid": f"uid-{plain}", **obj.pop("metadata", {})}
    return Seen(0.0, 0, change, kind, plain, {"metadata": named, "spec": {"replicas": 1}, **obj})


def _found(theirs: list[Seen], ours: list[Seen]) -> list[str]:
    both = (PlayedStory(segments=[Segment("", events=events)]) for events in (theirs, ours))
    return [difference.kind for difference in differences(*both)]


def _claim(allocated: bool, *finalizers: str) -> Seen:
    metadata = {"finalizers": list(finalizers)}
    status: dict[str, Any] = {}
    if allocated:
        status["allocation"] = {"devices": {"results": []}}
    return _seen("ResourceClaim", "shared", {"metadata": metadata, "status": status})


def test_a_claim_that_is_allocated_anew_may_lose_its_finalizer_in_between_or_not() -> None:
    guard = "resource.kubernetes.io/delete-protection"
    released = [_claim(True, guard), _claim(False, guard)]
    slow = [*released, _claim(False), _claim(False, guard), _claim(True, guard)]
    assert _found([*released, _claim(True, guard)], slow) == []
    unguarded = [*released, _claim(False), _claim(True, guard)]
    assert len(_found(slow, unguarded)) == 1
    assert len(_found(released, [*released, _claim(False)])) == 1


def test_in_a_namespace_that_goes_only_pods_go_in_order() -> None:
    owner = {"kind": "StatefulSet", "name": "db", "uid": "uid-db"}
    for kind, odd in (("ControllerRevision", 0), ("Pod", 1)):
        owned = {"metadata": {"ownerReferences": [owner]}}
        both = [
            _seen("StatefulSet", "db", {}, "DELETED"),
            _seen(kind, "db-0", owned, "DELETED"),
        ]
        gone = _seen("Namespace", "s1", {"metadata": {"deletionTimestamp": "now"}})
        assert len(_found([gone, *both], [gone, *reversed(both)])) == odd
        assert len(_found(both, both[::-1])) == 1


def test_the_condition_of_a_budget_counts_at_rest_only() -> None:
    def budget(status: str) -> Seen:
        condition = {"type": "DisruptionAllowed", "status": status, "reason": ""}
        return _seen("PodDisruptionBudget", "pdb", {"status": {"conditions": [condition]}})

    swinging = [budget("True"), budget("False"), budget("True")]
    assert _found([budget("True")], swinging) == []
    rests = [Segment("", rest={("PodDisruptionBudget", "pdb"): story.object}) for story in swinging]
    both = (PlayedStory(segments=[rest]) for rest in rests[:2])
    assert len(differences(*both)) == 1


@pytest.mark.parametrize("goes", [True, False])
def test_the_pods_of_a_deleted_job_lose_finalizer_and_owner_in_any_order(goes: bool) -> None:
    def pod(*finalizers: str, owned: bool) -> Seen:
        owners = [{"kind": "Job", "name": "job", "uid": "uid-job"}] if owned else []
        metadata = {"finalizers": list(finalizers), "ownerReferences": owners}
        return _seen("Pod", "job-1", {"metadata": metadata})

    track, other = "batch.kubernetes.io/job-tracking", "example.com/other"
    deleted = {"metadata": {"deletionTimestamp": "now"} if goes else {}}
    first = [_seen("Job", "job", deleted), pod(track, other, owned=True)]
    last = pod(other, owned=False)
    theirs = [*first, pod(track, other, owned=False), last]
    ours = [*first, pod(other, owned=True), last]
    assert bool(_found(theirs, ours)) is not goes
    assert len(_found(theirs, [*first, pod(track, owned=True), pod(owned=False)])) == 1


def test_a_budget_beside_a_loop_is_no_loop() -> None:
    def swinging(kind: str, status: str) -> list[Seen]:
        states = [_seen(kind, "x", {"status": {status: n % 2}}) for n in range(8)]
        return [*states, _seen(kind, "x", {"status": {status: 2}})]

    claim = [_claim(number % 2 == 0) for number in range(8)]
    budget = swinging("PodDisruptionBudget", "currentHealthy")
    assert _found([*claim, *budget], [*claim, budget[-1]]) == []
    assert "loop" in _found([*claim, *swinging("StatefulSet", "readyReplicas")], claim)


@pytest.mark.parametrize("phase", ["Failed", "Running"])
def test_a_claim_may_be_generated_again_for_a_pod_that_has_ended(phase: str) -> None:
    pod = _seen("Pod", "job-1", {"status": {"phase": phase}})
    owner = {"kind": "Pod", "name": "job-1", "uid": "uid-job-1"}
    remade = [
        _seen("ResourceClaim", "job-1-c", {"metadata": {"ownerReferences": [owner]}}, change)
        for change in ("ADDED", "DELETED")
    ]
    differs = 0 if phase == "Failed" else 1
    assert len(_found([pod, *remade], [pod])) == differs
    rest = {("ResourceClaim", "job-1-c"): remade[0].object}
    stays = PlayedStory(segments=[Segment("", events=[pod, remade[0]], rest=rest)])
    assert differences(stays, PlayedStory(segments=[Segment("", events=[pod])]))


@pytest.mark.parametrize("gone", [True, False])
def test_a_pod_may_be_refused_while_its_claim_lists_a_pod_that_is_gone(gone: bool) -> None:
    spec = {"resourceClaims": [{"name": "c", "resourceClaimName": "shared"}]}

    def pod(change: str = "MODIFIED", **status: Any) -> Seen:
        return _seen("Pod", "new", {"spec": spec, "status": status}, change)

    def claim(*listed: str) -> Seen:
        entries = [{"resource": "pods", "name": entry, "uid": f"uid-{entry}"} for entry in listed]
        return _seen("ResourceClaim", "shared", {"status": {"reservedFor": entries}})

    old = _seen("Pod", "old" if gone else "another", {"spec": spec}, "DELETED")
    refused: dict[str, Any] = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "X"}]
    }
    bound = pod(conditions=[{"type": "PodScheduled", "status": "True"}])
    first = [claim("old"), old, pod("ADDED")]
    early = [*first, pod(**refused), pod(**refused, nominatedNodeName="n"), bound]
    at_once = [*first, pod(nominatedNodeName="n"), bound]
    theirs, ours = ([*order, claim()] for order in (early, at_once))
    assert bool(_found(theirs, ours)) is not gone
    event = {"reason": "FailedScheduling", "involvedObject": {"kind": "Pod", "name": "new"}}
    real = PlayedStory(segments=[Segment("", events=theirs)], messages=[event])
    assert bool(differences(real, PlayedStory(segments=[Segment("", events=ours)]))) is not gone


def test_a_pod_is_refused_in_any_order_while_other_pods_keep_its_claim() -> None:
    spec = {"resourceClaims": [{"name": "c", "resourceClaimName": "shared"}]}
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "X"}]
    refused: dict[str, Any] = {"conditions": conditions}

    def pod(change: str = "MODIFIED", **status: Any) -> Seen:
        return _seen("Pod", "new", {"spec": spec, "status": status}, change)

    def claim(*listed: str) -> Seen:
        entries = [{"resource": "pods", "name": entry, "uid": f"uid-{entry}"} for entry in listed]
        return _seen("ResourceClaim", "shared", {"status": {"reservedFor": entries}})

    old, kept = _seen("Pod", "old", {"spec": spec}, "DELETED"), claim("kept")
    created_first = [claim("old", "kept"), old, pod("ADDED"), kept, pod(**refused)]
    freed_first = [claim("old", "kept"), old, kept, pod("ADDED"), pod(**refused)]
    assert _found(created_first, freed_first) == []
    assert _found(created_first, freed_first[:-1])
