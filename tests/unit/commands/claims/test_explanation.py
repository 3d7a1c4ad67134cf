"""What explain finds out by itself: the controller's own judgement on live objects."""

from __future__ import annotations

from claimctl.commands.claims import controller_health, election
from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.explanation import Explanation, explain
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import claim_lines
from tests.support.printed import as_json

WAITING = {
    "conditions": [
        {
            "type": "Released",
            "status": "False",
            "reason": "HistoryUnknown",
            "message": "it waits 300 s",
            "lastTransitionTime": "2026-03-01T11:00:00Z",
        }
    ]
}


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_a_held_claim_names_its_holder_and_what_would_let_it_go() -> None:
    server = Server.holding()
    server.pod("a")
    told = await explained(server)
    assert claim_lines(told)[7:] == [
        "Held by:",
        "  deployments/train is listed (claimctl's)",
        "  ClaimReservation train (Deployment train, WhileRunning) holds "
        "(WorkloadWantsPods): Deployment train wants 1 pod",
        "Release:    not asked for; this would have to end first:",
        "  ConsumersLeft: 1 pod uses the claim: a",
        "What to do:",
        "  Nothing is wrong.",
        "  To free its devices: scale the Deployment to 0, or delete it: "
        "kubectl -n ml scale deployment/train --replicas=0",
        "  Then free them at once: claimctl release slice -n ml",
    ]


async def test_a_claim_that_a_downgrade_froze_is_not_held_and_nothing_is_not_all_well() -> None:
    server = Server.holding()
    server.pod("a")
    await server.carry_out()
    told = await explained(server)
    lines = claim_lines(told)
    text = "not held, frozen for the downgrade: its devices are lost when its last pod ends"
    assert f"  {text}" in lines
    does = "does not hold it now (FrozenForDowngrade)"
    assert f"  ClaimReservation train (Deployment train, WhileRunning) {does}" in lines
    assert advice(told) == (
        "Do not scale its workload to 0 now. The next step: claimctl downgrade status",
    )
    assert told.view.shown_state == "InUse (FrozenForDowngrade)"


async def test_an_idle_claim_can_be_released_at_once() -> None:
    server = Server.holding(replicas=0, retentionPolicy="Persistent")
    told = await explained(server)
    assert (told.releasable, told.release) == (True, None)
    assert advice(told) == (
        "Nothing is wrong.",
        "To free its devices: claimctl release slice -n ml",
    )


async def test_without_a_time_on_record_explain_does_not_pretend_to_know_one() -> None:
    """The controller counts from what it saw first; explain's own clock says nothing."""
    server = Server.holding(status=WAITING)
    server.pod("late", node="")
    server.withdraw()
    server.write_list()
    told = await explained(server)
    (blocker,) = told.obstacles
    assert blocker.reason == "PodsMayBeBound"
    assert claim_lines(told)[-6:-3] == [
        "Release:    in progress (Withdrawn)",
        "  PodsMayBeBound: a scheduler that still sees an older version of the claim may bind "
        "1 pod: late (at most 60 s from the controller's first sight of the claim closed to them, "
        "by its own "
        "clock; explain cannot know when that was)",
        "  the controller reports in ClaimReservation train (HistoryUnknown): it waits 300 s",
    ]
    assert as_json(explanation_of(told, NOW))["release"]["blockers"][0]["until"] is None


async def test_a_pod_that_only_the_hold_keeps_waiting_is_no_consumer_of_a_release() -> None:
    """What is left is the binding time: explain has not seen whether a list ever had the pod."""
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference, shared=False)
    held = server.held_status(reference) | {"dialect": "hold"}
    server.reservation(status=held, retentionPolicy="Persistent")
    server.pod("late", node="")
    assert [each.reason for each in (await explained(server)).obstacles] == ["ConsumersLeft"]
    when = "2026-03-01T11:59:00Z"
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"status": {"conditions": [{**stuck, "lastTransitionTime": when}]}}
    server.admin.patch("pods", NAMESPACE, "late", status, "status")
    assert [each.reason for each in (await explained(server)).obstacles] == ["PodsMayBeBound"]


async def test_a_foreign_reference_is_named_and_left_to_its_owner() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    machine = {
        "apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "v-1"
    }  # fmt: skip
    server.claim("slice", reference, machine)
    server.reservation(status=server.held_status(reference))
    told = await explained(server)
    assert "  virtualmachines/vm is listed (not claimctl's)" in claim_lines(told)
    assert [blocker.reason for blocker in told.obstacles] == ["UnknownReferences"]


async def test_waiting_pods_that_claimctl_left_in_a_list_are_named_with_the_way_out() -> None:
    """Without them, the cluster would free the devices with the last pod; with them, it cannot."""
    server = Server.started()
    bound, *waiting = server.pod("a"), server.pod("b", node=""), server.pod("c", node="")
    server.claim("slice", bound, shared=False)
    await server.list_as_claimctl(bound, *waiting)
    told = claim_lines(await explained(server))
    assert (
        "Orphan:     lists 2 waiting pods for claimctl, which does not hold the claim any more: "
        "b, c; their entries may keep the devices where no pod can use them (ListedAhead)"
    ) in told
    assert told[-1] == "  See what is to be done: claimctl doctor orphans -n ml"


async def test_a_reservation_without_its_workload_says_so() -> None:
    server = Server.started()
    server.claim("slice", server.pod("a"))
    server.reservation()
    told = await explained(server)
    assert "inactive (WorkloadNotFound)" in "\n".join(claim_lines(told))
    assert (
        "Deployment ml/train of ClaimReservation train does not exist: create it, or reserve for "
        "one that exists: kubectl -n ml get deployment"
    ) in advice(told)


async def test_a_hold_that_is_over_releases_nothing_while_another_one_is_there() -> None:
    server = Server.started()
    reference = server.deployment()
    server.claim("slice", reference)
    server.reservation(status=server.held_status(reference))
    gone = {**reference, "name": "eval", "uid": "gone"}
    server.reservation("eval", workload="eval", status=server.held_status(gone))
    text = "\n".join(claim_lines(await explained(server)))
    assert "holds it no more (WorkloadEnded), and another ClaimReservation does" in text
    assert "releases the claim" not in text


async def test_the_document_says_what_a_withdrawn_reservation_asks_for() -> None:
    server = Server.holding()
    server.withdraw()
    told = as_json(explanation_of(await explained(server), NOW))
    assert [each["action"] for each in told["reservations"]] == ["Release"]


async def test_the_document_carries_the_verdict() -> None:
    server = Server.holding()
    server.pod("a")
    told = as_json(explanation_of(await explained(server), NOW))
    assert (told["apiVersion"], told["kind"]) == (
        "cli.claimctl.io/v1alpha1",
        "ClaimExplanation",
    )
    assert told["claim"]["state"] == "Held"
    assert told["reservations"][0]["action"] == "Hold"
    assert told["release"] == {
        "watchedSince": None,
        "underWay": None,
        "possible": False,
        "blockers": [
            {
                "reason": "ConsumersLeft",
                "message": "1 pod uses the claim: a",
                "afterSeconds": None,
                "until": None,
            }
        ],
    }


ACTING = election.Election(election.State.ACTING, "")


async def test_explain_shows_what_blocks_the_release() -> None:
    made = Server.with_unreadable("pods", "bad")
    owner = made.deployment(replicas=0)
    made.claim("slice", owner)
    made.pod("bad")
    made.reservation(status=made.held_status(owner))
    told = await explain(made.client, NAMESPACE, "slice", made.clock.now())
    assert not told.releasable
    assert [one.sign for one in controller_health.troubles(ACTING, told.assessment)] == [
        controller_health.Sign.STATUS_BEHIND  # the generation, and not the consumers
    ]
    problem = "Expected `int`, got `str` - at `$.metadata.generation`"
    text = claim_lines(told)
    assert text[text.index("Cannot be read:") + 1] == f"  Pod ml/bad: {problem}"
    assert f"  UnreadableObject: Pod ml/bad cannot be read: {problem}" in text
    assert any("Correct or delete the object" in line for line in text)
    shown = as_json(explanation_of(told, made.clock.now()))
    assert shown["unreadable"][0]["message"] == problem
    assert shown["leftAlone"] is False


async def test_explain_says_that_a_claim_is_left_alone() -> None:
    made = Server.with_unreadable("claimreservations", "train")
    owner = made.deployment()
    made.claim("slice", owner)
    made.reservation(status=made.held_status(owner))
    told = await explain(made.client, NAMESPACE, "slice", made.clock.now())
    assert told.left_alone
    assert [one.sign for one in controller_health.troubles(ACTING, told.assessment)] == []
    assert any("leaves the claim alone" in line for line in claim_lines(told))
    assert as_json(explanation_of(told, made.clock.now()))["leftAlone"] is True


async def test_a_claim_that_asks_in_vain_is_told_so_before_a_pod_waits() -> None:
    server = Server.started()
    exactly = {"name": "gpu", "exactly": {"deviceClassName": "nosuch"}}
    spec = {"devices": {"requests": [exactly]}}
    meta = {"name": "slice", "namespace": NAMESPACE}
    server.admin.create("resourceclaims", {"metadata": meta, "spec": spec})
    told = await explained(server)
    assert [matter.reason for matter in told.matters] == ["NoDeviceClass"]
    assert advice(told)[0].startswith("Create DeviceClass nosuch")
