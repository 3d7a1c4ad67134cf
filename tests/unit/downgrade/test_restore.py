"""The way back: replaced references return to the lists, as far as they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault

from claimctl.downgrade import plans
from claimctl.downgrade.plan_run import ATTEMPTS
from claimctl.downgrade.plans import PlanRefused
from claimctl.downgrade.restore import restore_plan
from claimctl.wire.reservations import (
    DowngradedClaim,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from claimctl.wire.resources import DOWNGRADEPLANS
from tests.support.claim_server import NAMESPACE, Server

GANG = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang"}


async def prepared(server: Server, *claims: str) -> dict[str, str]:
    """A Deployment that exists, and claims of it that were expanded; its reference."""
    train = server.deployment()
    for name in claims or ("slice",):
        server.claim(name, train)
        server.pod(f"pod-{name}", claim=name)
    await server.carry_out()
    return train


async def restored(server: Server, dialect: str = "native") -> DowngradePlanStatus:
    plan = await plans.begin_restore(server.client, None)
    assert plan is not None
    return await restore_plan(server.client, plan, server.clock, dialect)


def states(status: DowngradePlanStatus) -> list[tuple[str, str, str]]:
    return [(each.name, each.state, each.reason) for each in status.claims]


def only(status: DowngradePlanStatus) -> DowngradedClaim:
    (record,) = status.claims
    return record


async def test_references_return_beside_the_pods_and_leave_the_record() -> None:
    server = Server.started()
    await prepared(server)
    status = await restored(server)
    assert server.listed() == ["pods/pod-slice", "deployments/train"]
    assert (status.phase, states(status)) == ("Restored", [("slice", "Restored", "")])
    assert only(status).replaced_references == ()
    assert [each.phase for each in server.reports[-2:]] == ["Restoring", "Restored"]


async def test_the_progress_counts_the_claims_whose_references_have_returned() -> None:
    server = Server.started()
    await prepared(server, "slice", "other")
    await restored(server)
    begun = next(each for each in server.reports if each.phase == "Restoring")
    assert (begun.done, begun.total) == (0, 2)
    assert (server.reports[-1].done, server.reports[-1].total) == (2, 2)


async def test_the_plan_is_deleted_when_everything_has_returned_and_only_then() -> None:
    server = Server.started()
    await prepared(server)
    with pytest.raises(PlanRefused, match="run again"):
        await plans.end(server.client)
    await restored(server)
    await plans.end(server.client)
    assert (await server.client.list(DOWNGRADEPLANS)).items == ()


async def test_without_a_plan_there_is_nothing_to_restore() -> None:
    server = Server.started()
    assert await plans.begin_restore(server.client, None) is None
    assert await plans.preview_restore(server.client, server.clock, "native") is None


def deleted(server: Server) -> None:
    server.admin.delete("deployments", NAMESPACE, "train")


def recreated(server: Server) -> None:
    deleted(server)
    server.deployment()


def without_pods(server: Server) -> None:
    server.admin.patch("pods", NAMESPACE, "pod-slice", {"status": {"phase": "Succeeded"}}, "status")


def unreadable(server: Server) -> None:
    refusal = Fault(status=403, reason="Forbidden", message="deployments")
    server.upon("get", "deployments", lambda _: refusal)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        pytest.param(deleted, "WorkloadGone", id="the workload is gone"),
        pytest.param(recreated, "WorkloadGone", id="the workload has another UID"),
        pytest.param(without_pods, "NoConsumer", id="no pod uses the claim"),
        pytest.param(unreadable, "NotVerified", id="the workload cannot be read"),
    ],
)
async def test_a_reference_that_cannot_return_is_listed_and_stays_on_record(
    happens: Callable[[Server], None], reason: str
) -> None:
    server = Server.started()
    train = await prepared(server)
    happens(server)
    before = server.admin.get("resourceclaims", NAMESPACE, "slice")
    status = await restored(server)
    assert (status.phase, states(status)) == ("PartlyRestored", [("slice", "NotRestored", reason)])
    assert [each.uid for each in only(status).replaced_references] == [train["uid"]]
    assert only(status).message.startswith("deployments/train: ")
    assert server.admin.get("resourceclaims", NAMESPACE, "slice") == before


async def test_what_could_not_return_returns_with_a_later_run() -> None:
    server = Server.started()
    await prepared(server)
    await restored(server, "hold")
    status = await restored(server)
    assert (status.phase, server.listed()[-1]) == ("Restored", "deployments/train")


@pytest.mark.parametrize(
    ("dialect", "phase", "last"),
    [("podgroup", "Restored", "podgroups/gang"), ("hold", "PartlyRestored", "pods/a")],
)
async def test_a_pod_group_returns_where_pods_can_share_a_claim_through_groups(
    dialect: str, phase: str, last: str
) -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    body = {"metadata": {"name": "gang", "namespace": NAMESPACE}, "spec": spec}
    uid = server.admin.create("podgroups", body)["metadata"]["uid"]
    server.claim("slice", {**GANG, "uid": uid}, shared=False)
    server.pod("a", group="gang")
    await server.carry_out()
    assert server.listed() == ["pods/a"]
    status = await restored(server, dialect)
    assert (status.phase, server.listed()[-1]) == (phase, last), states(status)


async def test_another_writer_of_the_claim_is_not_written_over() -> None:
    server = Server.started()
    await prepared(server)

    def meanwhile(number: int) -> None:
        if number == 1:
            server.admin.bind(NAMESPACE, "late", "n1")
            late = server.admin.get("pods", NAMESPACE, "late")["metadata"]["uid"]
            listed = server.admin.get("resourceclaims", NAMESPACE, "slice")["status"]["reservedFor"]
            server.write_list(*listed, {"resource": "pods", "name": "late", "uid": late})

    server.pod("late", node="")
    server.upon("patch", "resourceclaims", meanwhile)
    await restored(server)
    assert server.listed() == ["pods/pod-slice", "pods/late", "deployments/train"]


async def test_a_busy_writer_ends_in_a_report() -> None:
    server = Server.started()
    await prepared(server)
    tries: list[int] = []

    def always(number: int) -> None:
        tries.append(number)
        label = {"metadata": {"labels": {"n": str(number)}}}
        server.admin.patch("resourceclaims", NAMESPACE, "slice", label)

    server.upon("patch", "resourceclaims", always)
    status = await restored(server)
    assert (len(tries), states(status)) == (ATTEMPTS, [("slice", "Failed", "Conflict")])
    assert status.phase == "PartlyRestored"


async def test_an_answer_that_was_lost_is_looked_at_again() -> None:
    server = Server.started()
    await prepared(server)
    server.upon("patch", "resourceclaims", lambda number: Fault(hang=True) if number == 1 else None)
    status = await restored(server)
    assert (status.phase, server.listed()[-1]) == ("Restored", "deployments/train")


async def test_a_preview_writes_nothing_and_gives_the_same_result() -> None:
    server = Server.started()
    await prepared(server)
    before = server.handler.api.store.revision
    status = await plans.preview_restore(server.client, server.clock, "native")
    assert status is not None
    assert (status.phase, states(status)) == ("Restored", [("slice", "Restored", "")])
    assert server.handler.api.store.revision == before


async def test_a_claim_that_was_refused_has_nothing_to_restore_and_is_not_written() -> None:
    server = Server.started()
    server.claim(shared=False)
    await server.carry_out()
    before = server.version()
    status = await restored(server)
    assert (status.phase, server.version()) == ("Restored", before)


async def test_a_refusal_of_the_server_is_reported_with_the_claim() -> None:
    server = Server.started()
    await prepared(server)
    refusal = Fault(status=403, reason="Forbidden", message="no binding permission")
    server.upon("patch", "resourceclaims", lambda _: refusal)
    status = await restored(server)
    assert states(status) == [("slice", "Failed", "Forbidden")]
    assert len(only(status).replaced_references) == 1


async def test_after_the_way_back_another_downgrade_can_be_prepared() -> None:
    server = Server.started()
    await prepared(server)
    await restored(server)
    plan = await plans.begin(server.client, DowngradePlanSpec())
    status = await server.carry_out(plan)
    assert (plan.spec.action, status.phase, server.listed()) == (
        "Prepare",
        "Prepared",
        ["pods/pod-slice"],
    )


async def test_an_unserved_api_group_counts_as_a_workload_that_is_gone() -> None:
    server = Server.started()
    thing = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
    server.claim("slice", thing)
    server.pod("a")
    await server.carry_out()
    assert server.listed() == ["pods/a"]
    status = await restored(server)
    assert states(status) == [("slice", "NotRestored", "WorkloadGone")]
