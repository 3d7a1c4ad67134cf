"""Carrying out a plan: record first, write under the version, verify, leave what cannot be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault

from claimctl.downgrade import prepare
from claimctl.downgrade.plan_run import ATTEMPTS
from claimctl.downgrade.prepare import run_plan
from claimctl.downgrade.scope import PARALLELISM
from claimctl.kube.client import Client
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from claimctl.wire.seams import Response, Transport
from tests.support.claim_server import NAMESPACE, TRAIN, Server

THING = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
GANG = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "g-1"}
WORKLOAD = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")


async def test_a_claim_ends_with_exactly_its_live_pods_and_is_recorded() -> None:
    server = Server.started()
    server.claim()
    server.pod("b")
    server.pod("a")
    meta = server.admin.get("resourceclaims", NAMESPACE, "slice")["metadata"]
    status = await server.carry_out()
    assert server.listed() == ["pods/a", "pods/b"]
    assert status == DowngradePlanStatus(
        observed_generation=1,
        phase="Prepared",
        total=1,
        done=1,
        claims=(
            DowngradedClaim(
                namespace=NAMESPACE,
                name="slice",
                uid=meta["uid"],
                state="Expanded",
                pods=2,
                workload_references=(WORKLOAD,),
                replaced_references=(WORKLOAD,),
                resource_version=meta["resourceVersion"],
            ),
        ),
    )


async def test_the_freeze_is_acknowledged_and_what_will_go_is_recorded_before_it_goes() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    seen: list[list[str]] = []
    server.upon("patch", "downgradeplans", lambda _: seen.append(server.listed()))
    version = server.version()
    await server.carry_out()
    assert [status.phase for status in server.reports] == ["Frozen", "Expanding", "Prepared"]
    assert seen == [["deployments/train"], ["deployments/train"], ["pods/a"]]
    recorded = server.reports[1].claims[0]
    assert (recorded.state, recorded.replaced_references) == ("Pending", (WORKLOAD,))
    assert recorded.resource_version == version


async def test_only_the_plans_namespaces_are_looked_at() -> None:
    server = Server.started("ml", "web")
    for namespace in ("ml", "web"):
        server.claim(namespace=namespace)
        server.pod("a", namespace=namespace)
    status = await server.carry_out(await server.plan("web"))
    assert [each.namespace for each in status.claims] == ["web"]
    assert server.listed(namespace="ml") == ["deployments/train"]


async def test_pods_that_were_bound_unseen_are_added_after_the_settle_time() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    start = server.clock.monotonic()

    def late(number: int) -> Fault | None:
        # the scheduler, still before the written list, binds a pod without listing it
        if number == 1:
            server.pod("late")
        return None

    server.upon("patch", "resourceclaims", late)
    status = await server.carry_out()
    assert server.listed() == ["pods/a", "pods/late"]
    assert status.claims[0].pods == 2
    assert server.clock.monotonic() - start >= 5.0


async def test_pods_that_a_scheduler_may_be_binding_for_a_listed_group_are_listed_as_well() -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.claim("slice", GANG, shared=False)
    server.pod("a", group="gang")
    server.pod("waits", group="gang", node="")

    def late(number: int) -> Fault | None:
        if number == 1:
            server.pod("late", group="gang", node="")
        return None

    server.upon("patch", "resourceclaims", late)
    status = await server.carry_out()
    assert server.listed() == ["pods/a", "pods/waits", "pods/late"]
    assert (status.phase, status.claims[0].pods) == ("Prepared", 3)


async def test_pods_that_the_scheduler_lists_itself_by_now_hold_no_plan_up() -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.claim("slice", GANG, shared=False)
    server.pod("a", group="gang")

    def another(number: int) -> None:
        server.pod(f"new-{number}", group="gang", node="")

    server.upon("list", "pods", another)
    assert (await server.carry_out()).phase == "Prepared"


async def test_a_list_that_the_scheduler_keeps_itself_needs_no_settling() -> None:
    server = Server.started()
    server.claim(shared=False)
    server.write_list(TRAIN, server.pod("a"))
    await server.carry_out()
    assert server.listed() == ["pods/a"]
    assert server.clock.monotonic() == 0.0


async def test_a_conflict_starts_over_with_a_new_list_of_pods() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")

    def meanwhile(number: int) -> Fault | None:
        if number == 1:
            server.pod("b")
            server.admin.patch(
                "resourceclaims", NAMESPACE, "slice", {"metadata": {"labels": {"x": "y"}}}
            )
        return None

    server.upon("patch", "resourceclaims", meanwhile)
    await server.carry_out()
    assert server.listed() == ["pods/a", "pods/b"]


async def test_a_busy_writer_ends_in_a_report_not_in_a_loop() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    tries: list[int] = []

    def always(number: int) -> Fault | None:
        tries.append(number)
        label = {"metadata": {"labels": {"n": str(number)}}}
        server.admin.patch("resourceclaims", NAMESPACE, "slice", label)
        return None

    server.upon("patch", "resourceclaims", always)
    status = await server.carry_out()
    assert (status.phase, status.claims[0].state, status.claims[0].reason) == (
        "Blocked",
        "Failed",
        "Conflict",
    )
    assert len(tries) == ATTEMPTS
    assert server.listed() == ["deployments/train"]


async def test_a_reference_that_keeps_coming_back_is_reported() -> None:
    server = Server.started()
    server.claim(shared=False)
    reference = server.pod("a")
    server.write_list(TRAIN, reference)

    def put_back(_: int) -> Fault | None:
        server.write_list(TRAIN, reference)
        return None

    server.upon("list", "resourceclaims", put_back)
    status = await server.carry_out()
    assert (status.phase, status.claims[0].reason) == ("Blocked", "PutBack")


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "unlisted"])
async def test_pods_that_come_while_lists_are_verified_count_only_if_they_are_not_listed(
    listed: bool,
) -> None:
    """One pod comes, and the one before it ends, with every LIST of pods."""
    server = Server.started()
    server.claim()
    server.pod("a")

    def come(number: int) -> Fault | None:
        if number > 1:
            if number > 2:
                server.admin.delete("pods", NAMESPACE, f"p-{number - 1}")
            reference = server.pod(f"p-{number}")
            if listed:
                server.write_list(reference)
        return None

    server.upon("list", "pods", come)
    status = await server.carry_out()
    expected = ("Prepared", "") if listed else ("Blocked", "PutBack")
    assert (status.phase, status.claims[0].reason) == expected


async def test_another_run_over_a_finished_plan_verifies_and_keeps_the_record() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    await server.carry_out()
    before = server.admin.get("resourceclaims", NAMESPACE, "slice")
    second = await server.carry_out(await server.read_plan())
    assert (second.phase, second.claims[0].state) == ("Prepared", "Expanded")
    assert second.claims[0].replaced_references == (WORKLOAD,)
    assert server.admin.get("resourceclaims", NAMESPACE, "slice") == before


async def test_a_preview_writes_nothing_and_tells_the_same() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    before = server.handler.api.store.revision
    status = await prepare.preview(server.client, DowngradePlan())
    assert [(each.state, each.pods) for each in status.claims] == [("Expanded", 1)]
    assert server.handler.api.store.revision == before


async def test_progress_is_told_once_a_second_however_many_claims_there_are() -> None:
    server = Server.started()
    for number in range(20):
        server.claim(f"c-{number}")
        server.pod(f"p-{number}", claim=f"c-{number}")
    server.upon("patch", "resourceclaims", lambda _: Fault(delay=0.25))
    await server.carry_out(await server.plan(parallelism=1))
    phases = [status.phase for status in server.reports]
    assert phases == ["Frozen", *["Expanding"] * 6, "Prepared"]
    assert [status.done for status in server.reports] == [0, 0, 4, 8, 12, 16, 20, 20]


async def test_claims_are_written_side_by_side_and_no_more_than_the_plan_allows() -> None:
    server = Server.started()
    for number in range(12):
        server.claim(f"c-{number}", shared=False)
        server.write_list(TRAIN, server.pod(f"p-{number}", claim=f"c-{number}"), name=f"c-{number}")
    server.upon("patch", "resourceclaims", lambda _: Fault(delay=1.0))
    await server.carry_out(await server.plan(parallelism=4))
    assert server.clock.monotonic() == 3.0


async def test_many_claims_share_a_list_of_pods_also_after_conflicts() -> None:
    server = Server.started()
    claims = 5 * PARALLELISM
    for number in range(claims):
        server.claim(f"c-{number}", shared=False)
        server.write_list(TRAIN, server.pod(f"p-{number}", claim=f"c-{number}"), name=f"c-{number}")
    lists = 0

    def count(_: int) -> None:
        nonlocal lists
        lists += 1
        for number in range(claims) if lists == 1 else ():
            label = {"metadata": {"labels": {"x": "y"}}}
            server.admin.patch("resourceclaims", NAMESPACE, f"c-{number}", label)

    server.upon("list", "pods", count)
    status = await server.carry_out()
    assert (status.phase, status.done, lists) == ("Prepared", claims, 3)


async def test_only_claims_with_the_labels_are_expanded_and_stay_in_the_plan_without_them() -> None:
    server = Server.started()
    for name, team in (("one", "ml"), ("two", "web")):
        server.claim(name, labels={"team": team})
        server.pod(f"pod-{name}", claim=name)
    status = await server.carry_out(await server.plan(claimSelector="team in (ml)"))
    assert [each.name for each in status.claims] == ["one"]
    assert server.listed("two") == ["deployments/train"]
    server.admin.patch("resourceclaims", NAMESPACE, "one", {"metadata": {"labels": None}})
    again = await server.carry_out(await server.read_plan())
    assert [each.replaced_references for each in again.claims] == [(WORKLOAD,)]


async def test_a_skipped_claim_is_left_as_it_is_and_blocks_nothing() -> None:
    server = Server.started()
    for name in ("one", "two"):
        server.claim(name)
        server.pod(f"pod-{name}", claim=name)
    skip = [{"namespace": NAMESPACE, "name": "two"}]
    status = await server.carry_out(await server.plan(skip=skip))
    assert status.phase == "Prepared"
    assert [(each.name, each.state, each.replaced_references) for each in status.claims] == [
        ("one", "Expanded", (WORKLOAD,)),
        ("two", "Skipped", ()),
    ]
    assert server.listed("two") == ["deployments/train"]


async def test_a_plan_with_a_wrong_selector_is_given_up_with_the_reason() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    status = await server.carry_out(await server.plan(claimSelector="team ~ ml"))
    (condition,) = status.conditions
    assert (status.phase, condition.type, condition.reason) == (
        "Failed",
        "Accepted",
        "InvalidSelector",
    )
    assert "'team ~ ml' is not a label requirement" in condition.message
    assert server.listed() == ["deployments/train"]


@dataclass
class Late:
    """A connection on which the first write to a claim is given up and arrives with the second."""

    inner: Transport
    waiting: tuple[Any, ...] = ()

    async def send(self, method: str, path: str, *rest: Any) -> Response:
        if method == "PATCH" and "/resourceclaims/" in path:
            if not self.waiting:
                self.waiting = (method, path, *rest)
                raise TimeoutError
            await self.inner.send(*self.waiting)
        return await self.inner.send(method, path, *rest)


async def test_what_a_write_took_out_that_arrived_late_stays_on_record() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    client = Client(Late(server.handler), server.clock, rng=Random(0))
    await run_plan(client, await server.plan(), server.clock)
    (record,) = (await server.read_plan()).status.claims
    assert server.listed() == ["pods/a"]
    assert (record.state, record.replaced_references) == ("Expanded", (WORKLOAD,))


async def test_what_was_not_taken_out_is_not_on_record_in_the_end() -> None:
    """An idle hold is refused, let go by its owner, and pods use the claim on their own."""
    server = Server.started()
    server.claim(shared=False)
    await server.carry_out()
    (record,) = (await server.read_plan()).status.claims
    assert (record.reason, record.replaced_references) == ("NoConsumer", ())
    server.write_list(server.pod("a"))
    await server.carry_out(await server.read_plan())
    assert (await server.read_plan()).status.claims == ()


async def test_an_owner_that_lets_go_during_the_write_was_not_replaced() -> None:
    server = Server.started()
    server.claim(shared=False)
    reference = server.pod("a")
    server.write_list(TRAIN, reference)

    def let_go(number: int) -> None:
        if number == 1:
            server.write_list(reference)

    server.upon("patch", "resourceclaims", let_go)
    status = await server.carry_out()
    assert [(each.state, each.replaced_references) for each in status.claims] == [("Expanded", ())]


async def held_with_pods_listed_ahead(server: Server) -> None:
    """A pod runs, one that claimctl listed waits, and one that the scheduler listed waits."""
    server.claim(shared=False)
    running, waits = server.pod("a"), server.pod("waits", node="")
    coming = server.pod("coming", node="")
    server.write_list(running, coming)
    own = {**TRAIN, "uid": "d-2"}
    await server.list_as_claimctl(running, coming, own, waits)
    server.reservation(status=server.held_status(own))


async def test_pods_that_were_listed_ahead_leave_first_and_the_hold_after_the_binding_time() -> (
    None
):
    server = Server.started()
    await held_with_pods_listed_ahead(server)
    written: list[tuple[float, list[str]]] = []

    def look(number: int) -> None:
        written.append((server.clock.monotonic(), server.listed()))

    server.upon("patch", "resourceclaims", look)
    status = await server.carry_out()
    (first, before), (last, meanwhile) = written
    assert before == ["pods/a", "pods/coming", "deployments/train", "pods/waits"]
    assert meanwhile == ["pods/a", "pods/coming", "deployments/train"]
    assert server.listed() == ["pods/a", "pods/coming"]
    assert last - first >= 60.0
    assert [(each.state, each.reason) for each in status.claims] == [("Expanded", "")]


async def test_a_run_that_waits_says_so_and_gives_signs_of_life() -> None:
    server = Server.started()
    await held_with_pods_listed_ahead(server)
    times: list[float] = []

    def look(number: int) -> None:
        times.append(server.clock.monotonic())

    server.upon("patch", "downgradeplans", look)
    await server.carry_out()
    assert max(later - one for one, later in pairwise(times)) <= 5.0
    waiting = [one.claims[0] for one in server.reports if one.claims and one.claims[0].reason]
    assert {(each.state, each.reason) for each in waiting} == {("Pending", "PodsMayBeBound")}
    assert waiting[-1].message.endswith("the hold stays for 5 s more")


async def test_a_run_that_was_cut_off_while_it_waited_leaves_the_wait_to_the_next_one() -> None:
    server = Server.started()
    await held_with_pods_listed_ahead(server)
    run = asyncio.create_task(server.carry_out())
    await server.clock.sleep(30.0)
    run.cancel()
    await asyncio.wait({run})
    assert "deployments/train" in server.listed()
    begun = server.clock.monotonic()
    await server.carry_out(await server.read_plan())
    assert server.listed() == ["pods/a", "pods/coming"]
    assert server.clock.monotonic() - begun >= 60.0


async def test_a_claim_in_which_only_pods_wait_that_were_listed_ahead_stays_as_it_is() -> None:
    """Without them the list would be empty, and the devices allocated for good."""
    server = Server.started()
    server.claim(shared=False)
    waits = server.pod("waits", node="")
    own = {**TRAIN, "uid": "d-2"}
    await server.list_as_claimctl(own, waits)
    server.reservation(status=server.held_status(own))
    before = server.version()
    status = await server.carry_out()
    assert [(each.state, each.reason) for each in status.claims] == [("Refused", "NoConsumer")]
    assert server.version() == before


async def test_pods_that_a_downgrade_has_listed_on_purpose_stay_in_the_next_run() -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.claim("slice", GANG, shared=False)
    server.pod("a", group="gang")
    server.pod("waits", group="gang", node="")
    await server.carry_out()
    listed = server.admin.get("resourceclaims", NAMESPACE, "slice")["status"]["reservedFor"]
    server.write_list(GANG, *listed)
    status = await server.carry_out(await server.read_plan())
    assert server.listed() == ["pods/a", "pods/waits"]
    assert status.phase == "Prepared"


@pytest.mark.parametrize("namespaces", [(), (NAMESPACE,)], ids=["all", "one"])
@pytest.mark.parametrize("recorded", [True, False])
async def test_a_hold_that_a_reservation_has_on_record_is_replaced(
    namespaces: tuple[str, ...], recorded: bool
) -> None:
    server = Server.started()
    server.claim("slice", THING, shared=False)
    server.write_list(TRAIN, server.pod("a"))
    server.reservation(status=server.held_status(TRAIN) if recorded else None)
    status = await server.carry_out(await server.plan(*namespaces))
    assert [each.state for each in status.claims] == ["Expanded" if recorded else "Refused"]
    assert server.listed() == ["pods/a"] if recorded else ["deployments/train", "pods/a"]


@pytest.mark.parametrize("when", ["before", "while it is expanded"])
async def test_a_downgrade_goes_on_past_a_claim_that_cannot_be_read_and_is_blocked(
    when: str,
) -> None:
    made = Server.started()
    for name in ("good", "slice"):
        made.claim(name)
        made.pod(f"pod-{name}", claim=name)
    if when == "before":
        made.spoil("resourceclaims", "slice")
    else:
        made.upon("patch", "resourceclaims", lambda _: made.spoil("resourceclaims", "slice"))
    status = await made.carry_out()
    states = {each.name: (each.state, each.reason) for each in status.claims}
    assert states == {"good": ("Expanded", ""), "slice": ("Failed", "UnreadableObject")}
    assert status.phase == "Blocked"
    assert made.listed("good") == ["pods/pod-good"]


async def test_a_downgrade_leaves_claims_that_an_unreadable_pod_may_use() -> None:
    made = Server.with_unreadable("pods", "bad")
    for name in ("good", "slice"):
        made.claim(name)
        made.pod(f"pod-{name}", claim=name)
    made.pod("bad", claim="slice")
    status = await made.carry_out()
    states = {each.name: (each.state, each.reason) for each in status.claims}
    assert states == {"good": ("Expanded", ""), "slice": ("Refused", "UnreadablePod")}
    assert made.listed("slice") == ["deployments/train"]
