"""How ``claimctl doctor`` reads a cluster: it goes on past what the user may not read."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.commands.doctor.model import CheckVerdict
from claimctl.wire.coordination import micro_time
from claimctl.wire.reservations import RESERVE_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import CHECKS, deployed, diagnosed, elected, problems, the


def forbidding(made: Server, *plurals: str, verbs: tuple[str, ...] = ("list", "create")) -> None:
    def hook(point: FaultPoint) -> Fault | None:
        if point.plural in plurals and point.verb in verbs:
            return Fault(status=403, reason="Forbidden", message=f"cannot list {point.plural}")
        return None

    made.handler.fault = hook


EVERYTHING = {
    "pods": {
        *("orphans", "listed-ahead", "near-limit", "dangling-references", "unreadable-objects"),
        *("held-devices", "waiting-pods"),
    },
    "resourceclaims": {
        *(
            "reservation-mode",
            "orphans",
            "listed-ahead",
            "near-limit",
            "dangling-references",
            "held-devices",
            "waiting-pods",
            "unreadable-objects",
        ),
    },
    "events": {"refused-pods"},
    "nodes": {"held-devices", "kubelets", "stale-taints"},
    "deployments": {"annotations", "deployment"},
    "resourceslices": {"drivers", "held-devices"},
    "subjectaccessreviews": {"permissions"},
    "claimreservations": {
        *(
            "reservations",
            "orphans",
            "listed-ahead",
            "near-limit",
            "dangling-references",
            "held-devices",
            "waiting-pods",
            "unreadable-objects",
            "kinds",
        ),
    },
    "downgradeplans": {"plans"},
    "leases": set(),
}


@pytest.mark.parametrize("plural", EVERYTHING)
async def test_what_may_not_be_read_is_unknown_and_the_rest_is_checked(plural: str) -> None:
    made = Server.started()
    elected(made)
    deployed(made, ready=2)
    made.orphan()
    forbidding(made, plural)
    found = await diagnosed(made)
    unknown = {each.check for each in found if each.verdict is CheckVerdict.UNKNOWN}
    assert unknown == EVERYTHING[plural]
    assert problems(found) == ([] if "orphans" in unknown else [("orphans", "slice")])
    assert {each.check for each in found} == CHECKS


async def test_a_user_without_any_right_still_gets_a_line_for_every_check() -> None:
    made = Server.started()
    forbidding(made, *EVERYTHING, "nodes", verbs=("list", "create", "get"))
    found = await diagnosed(made)
    assert problems(found) == []
    assert {each.check for each in found} == CHECKS
    assert "you may not read Leases" in the(found, "controller").message
    hint = "you may not list resourceclaims in all namespaces (-n NAME checks one namespace)"
    assert hint in the(found, "orphans").message


async def test_one_namespace_can_be_checked_alone() -> None:
    made = Server.started(NAMESPACE, "other")
    elected(made)
    made.orphan()
    assert problems(await diagnosed(made, "other")) == []
    assert problems(await diagnosed(made, NAMESPACE)) == [("orphans", "slice")]


async def test_the_rights_of_the_service_account_say_nothing_of_a_controller_without_it() -> None:
    made, asked = Server.started(), Counter[str]()
    elected(made)

    def count(point: FaultPoint) -> None:
        asked[point.plural] += 1

    made.handler.fault = count
    permissions = the(await diagnosed(made), "permissions")
    assert permissions.verdict is CheckVerdict.FACT
    assert permissions.message == (
        "not checked: the controller that acts has no Deployment here, so its user is not known"
    )
    assert asked["subjectaccessreviews"] == 0
    deployed(made, ready=2)
    assert the(await diagnosed(made), "permissions").verdict is CheckVerdict.OK
    assert asked["subjectaccessreviews"] > 0


def unmatched(made: Server) -> None:
    """A Deployment whose pods get claims of their own, with an annotation for all claims."""
    labels = {"app": "own"}
    pod = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    meta = {"name": "own", "namespace": NAMESPACE, "annotations": {RESERVE_ANNOTATION: "*"}}
    spec: dict[str, Any] = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    made.admin.create("deployments", {"metadata": meta, "spec": spec})


async def test_an_annotation_that_matches_nothing_is_reported() -> None:
    made = Server.started()
    elected(made)
    unmatched(made)
    found = await diagnosed(made)
    assert problems(found) == [("annotations", "deployment/own")]
    assert '"*" matches no claim' in the(found, "annotations").message
    assert "resourceClaimTemplateName" in the(found, "annotations").message


async def test_a_status_that_stays_behind_is_a_problem() -> None:
    made = Server.started()
    elected(made)
    made.claim()
    made.deployment()
    made.reservation()
    assert problems(await diagnosed(made))[0] == ("reservations", "train")
    made.admin.patch(
        "claimreservations",
        NAMESPACE,
        "train",
        {"status": {"observedGeneration": 1}},
        "status",
    )
    assert ("reservations", "train") not in problems(await diagnosed(made))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "claim held by pods alone: do not scale to 0 now; next: `claimctl downgrade status`"),
        ({"upgradeTo": "1.37"}, "new pods of PodGroups wait; next: `claimctl upgrade status`"),
    ],
    ids=["a downgrade", "an upgrade"],
)
async def test_a_plan_under_way_is_a_problem(spec: dict[str, Any], text: str) -> None:
    made = Server.started()
    elected(made)
    made.claim("slice", made.deployment())
    made.pod("a")
    await made.carry_out(await made.plan(**spec))
    found = await diagnosed(made)
    assert ("plans", "claimctl") in problems(found)
    assert the(found, "plans").message.endswith(text)


async def test_claims_that_a_plan_froze_are_one_line_and_are_not_ready() -> None:
    made = Server.started()
    elected(made)
    made.claim("slice", made.deployment())
    frozen = {"type": "Ready", "status": "False", "reason": "FrozenForDowngrade", "message": ""}
    stamped = {**frozen, "lastTransitionTime": "2026-03-01T11:00:00Z"}
    for name in ("one", "two"):
        made.reservation(name, status={"observedGeneration": 1, "conditions": [stamped]})
    assert problems(await diagnosed(made)) == []
    made.write_list(made.pod("a"))
    await made.plan()
    found = await diagnosed(made)
    text = "not held, frozen for the downgrade: its devices are lost when its last pod ends; Do not"
    assert the(found, "reservations").message.startswith(text)


async def test_a_taint_of_a_killed_run_is_found_on_its_node() -> None:
    made = Server.started()
    elected(made)
    taints = [
        {"key": "CriticalAddonsOnly", "value": "claimctl-p-1", "effect": "NoSchedule"},
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoExecute"},
    ]
    made.admin.create("nodes", {"metadata": {"name": "n1"}, "spec": {"taints": taints}})
    assert problems(await diagnosed(made)) == [("stale-taints", "n1")]


async def test_a_resize_that_waits_although_pods_left_for_it_is_found() -> None:
    made = Server.started()
    elected(made)
    made.admin.create("reschedulerecords", {"metadata": {"name": "claimctl"}})
    since = micro_time(made.clock.now() - timedelta(minutes=30))
    entry = {"podUID": "p", "namespace": "team", "name": "big", "since": since, "victims": ["v"]}
    status = {"status": {"resizes": [entry]}}
    made.admin.patch("reschedulerecords", "", "claimctl", status, "status")
    assert problems(await diagnosed(made)) == [("resizes", "pod/big")]


def on_node(made: Server, name: str, *references: dict[str, str]) -> None:
    """A claim that can be used on node n1 alone."""
    meta = {"name": name, "namespace": NAMESPACE}
    made.admin.create("resourceclaims", {"metadata": meta, "spec": {"devices": {}}})
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation = {"devices": {}, "nodeSelector": selector}
    status = {"allocation": allocation, "reservedFor": list(references)}
    made.admin.patch("resourceclaims", NAMESPACE, name, {"status": status}, "status")


async def test_pods_may_tolerate_the_taints_of_the_node_of_their_claim() -> None:
    made = Server.started()
    elected(made)
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    made.admin.create("nodes", {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}})
    on_node(made, "slice", made.deployment())
    made.reservation(status={"observedGeneration": 1})
    made.pod("a")
    assert problems(await diagnosed(made)) == [("held-devices", "slice")]
    tolerations = {"spec": {"tolerations": [{**taint, "operator": "Equal"}]}}
    made.admin.patch("pods", NAMESPACE, "a", tolerations)
    assert problems(await diagnosed(made)) == []


async def test_pods_that_wait_for_a_claim_of_nobody_have_a_line_beside_its_node() -> None:
    made = Server.started()
    elected(made)
    made.admin.create("nodes", {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
    on_node(made, "slice", made.pod("a"))
    found = await diagnosed(made)
    assert the(found, "held-devices").verdict is CheckVerdict.FACT
    assert the(found, "waiting-pods").verdict is CheckVerdict.OK
    made.pod("late", node="")
    await made.clock.sleep(15)
    found = await diagnosed(made)
    waits = the(found, "waiting-pods")
    assert (waits.verdict, waits.object) == (CheckVerdict.WAITS, "slice")
    assert "1 pod waits since" in waits.message


async def test_a_pod_that_a_kubelet_refused_is_a_problem_until_it_runs_or_is_gone() -> None:
    made = Server.started()
    elected(made)
    made.claim("slice", made.pod("a"))
    pod = made.admin.get("pods", NAMESPACE, "a")["metadata"]
    event = {
        "metadata": {"name": "a.1", "namespace": NAMESPACE},
        "reason": "FailedPrepareDynamicResources",
        "message": "not allowed",
        "involvedObject": {"namespace": NAMESPACE, "name": "a", "uid": pod["uid"]},
    }
    made.admin.create("events", event)
    over = the(await diagnosed(made), "refused-pods")
    assert over.verdict is CheckVerdict.FACT
    assert over.message == "over, its pod runs or is gone: not allowed (1 event)"
    made.admin.patch("pods", NAMESPACE, "a", {"status": {"phase": "Pending"}}, "status")
    assert the(await diagnosed(made), "refused-pods").verdict is CheckVerdict.PROBLEM
    forbidding(made, "pods")
    assert the(await diagnosed(made), "refused-pods").verdict is CheckVerdict.PROBLEM


async def test_a_misspelled_annotation_is_named_with_the_one_that_is_meant() -> None:
    made = Server.started()
    made.deployment(annotations={"claimctl.io/reserv": "*", RESERVE_ANNOTATION: "*", "a/b": "c"})
    found = await diagnosed(made)
    assert ("annotations", "deployment/train") in problems(found)
    text = "claimctl knows no annotation claimctl.io/reserv; did you mean claimctl.io/reserve?"
    assert the(found, "annotations").message == text


@pytest.mark.parametrize(
    ("after", "found"), [(2.0, []), (60.0, [("dangling-references", "slice")])]
)
async def test_an_entry_that_is_about_to_leave_is_no_problem(
    after: float, found: list[tuple[str, str]]
) -> None:
    made = Server.started()
    elected(made)
    made.claim("slice", made.deployment())
    made.reservation(status={"observedGeneration": 1})
    running = made.pod("a")
    made.write_list(running, {"resource": "pods", "name": "gone", "uid": "u-1"})
    asyncio.get_running_loop().call_later(after, made.write_list, running)
    assert problems(await diagnosed(made)) == found


async def test_a_release_that_begins_meanwhile_is_no_problem() -> None:
    made = Server.started()
    elected(made)
    reference = made.deployment()
    made.claim("slice", reference)
    status = {**made.held_status(reference), "observedGeneration": 1}
    made.reservation(status=status)
    made.admin.delete("deployments", NAMESPACE, "train")
    said = {"type": "Released", "status": "False", "reason": "Settling", "message": "it settles"}
    change = {"status": {"conditions": [{**said, "lastTransitionTime": "2026-03-01T11:00:00Z"}]}}

    def begin() -> None:
        made.admin.patch("claimreservations", NAMESPACE, "train", change, "status")

    asyncio.get_running_loop().call_later(2.0, begin)
    found = await diagnosed(made)
    assert problems(found) == []
    assert the(found, "dangling-references").verdict == "fact"


async def test_claims_are_listed_once() -> None:
    made, lists = Server.started(), Counter[str]()

    def count(point: FaultPoint) -> None:
        lists[point.plural] += point.verb == "list"

    made.handler.fault = count
    await diagnosed(made)
    assert lists["resourceclaims"] == 1
