"""The RescheduleRecord: what it keeps, and writes of several processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from claimctl.kube.errors import Conflict
from claimctl_reschedule.run.records import (
    NoRecord,
    Records,
    with_move,
)
from claimctl_reschedule.shapes.records import (
    MAX_MOVES,
    MAX_WORKLOADS,
    RecordedAttempts,
    RecordedMove,
    RecordedTaint,
    RecordedWorkload,
    RescheduleRecordStatus,
)
from tests.support.claim_server import Server

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EMPTY = RescheduleRecordStatus()


def moved(at: int, source: str = "n1", outcome: str = "Landed") -> RecordedMove:
    moment = NOON + timedelta(seconds=at)
    return RecordedMove(strategy="s", at=moment, source=source, predicted="n2", outcome=outcome)


def test_the_oldest_workloads_are_forgotten_first() -> None:
    status = EMPTY
    for number in range(MAX_WORKLOADS + 2):
        status = with_move(status, RecordedWorkload(uid=f"r-{number}"), moved(number))
    assert len(status.workloads) == MAX_WORKLOADS
    assert {each.uid for each in status.workloads}.isdisjoint({"r-0", "r-1"})


def test_the_oldest_moves_of_a_workload_are_forgotten_first() -> None:
    status = EMPTY
    for number in range(MAX_MOVES + 3):
        status = with_move(status, RecordedWorkload(uid="r"), moved(number))
    (workload,) = status.workloads
    assert [each.at for each in workload.moves] == [
        NOON + timedelta(seconds=number) for number in range(3, MAX_MOVES + 3)
    ]


def test_a_move_that_is_written_again_replaces_itself() -> None:
    once = with_move(EMPTY, RecordedWorkload(uid="r"), moved(0, outcome="UnderWay"))
    again = with_move(once, RecordedWorkload(uid="r"), moved(0))
    assert [each.outcome for each in again.workloads[0].moves] == ["Landed"]
    assert with_move(again, RecordedWorkload(uid="r"), moved(0)) == again


def test_another_template_begins_anew() -> None:
    once = with_move(EMPTY, RecordedWorkload(uid="r", revision="1"), moved(0))
    again = with_move(once, RecordedWorkload(uid="r", revision="2"), moved(1))
    assert len(again.workloads[0].moves) == 1


async def test_the_record_is_made_when_it_is_first_written() -> None:
    records = Records(Server.started().client)
    assert await records.read() is None
    await records.change(lambda status: status)
    found = await records.read()
    assert found is not None
    assert found.status == EMPTY


async def test_changes_of_two_processes_are_both_kept() -> None:
    server = Server.started()
    first, second = Records(server.client), Records(server.client)
    await first.change(lambda status: status)
    interfered = False

    def change(status: RescheduleRecordStatus) -> RescheduleRecordStatus:
        nonlocal interfered
        if not interfered:
            interfered = True
            other = {"status": {"attempts": [{"podUID": "p-2", "count": 1}]}}
            server.admin.patch("reschedulerecords", "", "claimctl", other, "status")
        mine = RecordedAttempts(pod_uid="p-1", count=1)
        return replace(status, attempts=(*status.attempts, mine))

    await first.change(change)
    found = await second.read()
    assert found is not None
    assert {each.pod_uid for each in found.status.attempts} == {"p-1", "p-2"}


async def test_an_entry_that_is_taken_away_goes_on_the_server_too() -> None:
    """In a merge patch an absent field would stay as it is."""
    records = Records(Server.started().client)
    taint = RecordedTaint(node="n1", key="k", since=NOON, deadline=NOON)
    await records.change(lambda status: replace(status, taints=(taint,)))
    await records.change(lambda status: replace(status, taints=()))
    found = await records.read()
    assert found is not None
    assert found.status.taints == ()


async def test_a_writer_that_always_loses_gives_up() -> None:
    server = Server.started()
    records = Records(server.client)
    await records.change(lambda status: status)
    count = 0

    def change(status: RescheduleRecordStatus) -> RescheduleRecordStatus:
        nonlocal count
        count += 1
        other = {"status": {"attempts": [{"podUID": f"p-{count}", "count": count}]}}
        server.admin.patch("reschedulerecords", "", "claimctl", other, "status")
        return replace(status, taints=(RecordedTaint(node="n1", key="k"),))

    with pytest.raises(Conflict):
        await records.change(change)


async def test_without_the_crd_there_is_no_record() -> None:
    records = Records(Server.started(crds=False).client)
    assert await records.read() is None
    with pytest.raises(NoRecord, match="claimctl install"):
        await records.change(lambda status: status)
