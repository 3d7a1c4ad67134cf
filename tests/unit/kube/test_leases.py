"""Leader election under virtual time: who leads, for how long, and how it ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from kube_in_process.virtual import run
from structlog.testing import capture_logs

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Unreachable
from claimctl.kube.leases import (
    Deposed,
    HistoryLost,
    LeaderElection,
    LeaderElectionSettings,
    LeadershipLost,
    NoNamespace,
)
from claimctl.telemetry.face import Metric
from claimctl.wire.coordination import micro_time
from claimctl.wire.seams import Query, Response
from tests.support.telemetry import Recorder
from tests.support.wire_server import Reply, failure, ok, silence

EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SETTINGS = LeaderElectionSettings(name="l", namespace="ns")
MICRO_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


@dataclass
class LeaseServer:
    """Keeps one Lease with optimistic concurrency; ``fault`` may answer in its place."""

    lease: dict[str, Any] | None = None
    version: int = 0
    fault: Callable[[str], Reply | None] = field(default=lambda method: None)
    latency: float = 0.0
    writes: list[tuple[float, str]] = field(default_factory=list)

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        await asyncio.sleep(self.latency)
        reply = self.fault(method) or self.answer(method, body)
        return await reply.response()

    def answer(self, method: str, body: bytes | None) -> Reply:
        sent = _decode(body)
        if method == "POST":
            return self.create(sent)
        if self.lease is None:
            return failure(404, "NotFound")
        if method == "PATCH":
            if sent["metadata"]["resourceVersion"] != str(self.version):
                return failure(409, "Conflict")
            self.put(sent["spec"])
        return ok(self.lease)

    def create(self, sent: dict[str, Any]) -> Reply:
        if self.lease is not None:
            return failure(409, "AlreadyExists")
        self.put(sent["spec"])
        return ok(self.lease, 201)

    def put(self, spec: dict[str, Any]) -> None:
        for name in ("acquireTime", "renewTime"):
            assert MICRO_TIME.match(spec[name]), spec
        self.version += 1
        self.writes.append((asyncio.get_running_loop().time(), spec["holderIdentity"]))
        meta = {"name": "l", "namespace": "ns", "resourceVersion": str(self.version)}
        self.lease = {"metadata": meta, "spec": dict(spec)}

    @property
    def holders(self) -> list[str]:
        """Who held it, in turn."""
        names = [name for _, name in self.writes]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def _decode(body: bytes | None) -> dict[str, Any]:

    decoded: dict[str, Any] = json.loads(body) if body else {}
    return decoded


@dataclass
class ElectedProcess:
    """One process: an election and the work it leads, with when that ran."""

    server: LeaseServer
    name: str
    skew: timedelta = timedelta()
    stopping: float = 0.0
    container: str = ""
    recorder: Recorder = field(default_factory=Recorder)
    led: list[tuple[float, float]] = field(default_factory=list)

    async def work(self) -> None:
        began = now()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.stopping)
            self.led.append((began, now()))

    def election(self) -> LeaderElection:
        clock = LoopClock(EPOCH + self.skew)
        client = Client(self.server, clock, self.recorder, rng=Random(1))
        rng = Random(self.name)
        return LeaderElection(client, clock, SETTINGS, self.name, rng=rng, container=self.container)

    def start(
        self, lead: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> asyncio.Task[None]:
        return asyncio.create_task(self.election().run(lead or self.work), name=self.name)


def now() -> float:
    return asyncio.get_running_loop().time()


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_of_two_candidates_one_leads_and_the_other_follows_its_clean_stop_at_once() -> None:
    server = LeaseServer()
    a, b = ElectedProcess(server, "a"), ElectedProcess(server, "b")
    first = a.start()
    await asyncio.sleep(1)
    second = b.start()
    await asyncio.sleep(59)
    await stop(first)
    await asyncio.sleep(3)
    await stop(second)
    assert server.holders == ["a", "", "b", ""]
    assert a.led == [(0.0, 60.0)]
    (began, ended) = b.led[0]
    assert 60.0 <= began <= 62.5
    assert ended == 63.0
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


async def test_a_standby_that_stops_leaves_the_lease_to_its_leader() -> None:
    server = LeaseServer()
    leader = ElectedProcess(server, "a").start()
    await asyncio.sleep(1)
    standby = ElectedProcess(server, "b").start()
    await asyncio.sleep(9)
    await stop(standby)
    assert server.holders == ["a"]
    await stop(leader)


async def test_the_gauge_says_who_leads() -> None:
    a = ElectedProcess(LeaseServer(), "a")
    task = a.start()
    await asyncio.sleep(5)
    await stop(task)
    assert a.recorder.of(Metric.LEADER) == [0, 1, 0]


async def test_a_leader_that_died_is_followed_after_the_whole_lease_duration() -> None:
    server = LeaseServer()
    b = ElectedProcess(server, "b")
    stamp = "2026-01-02T03:04:05.000000Z"
    spec = {"holderIdentity": "dead", "acquireTime": stamp, "renewTime": stamp}
    server.put({**spec, "leaseDurationSeconds": 15})
    task = b.start()
    await asyncio.sleep(30)
    await stop(task)
    assert 15.0 <= b.led[0][0] <= 17.4


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(hours=3)])
async def test_a_clock_that_is_wrong_by_hours_changes_nothing(skew: timedelta) -> None:
    server = LeaseServer()
    a, b = ElectedProcess(server, "a", skew=skew), ElectedProcess(server, "b")
    first = a.start()
    await asyncio.sleep(1)
    second = b.start()
    await asyncio.sleep(100)
    await stop(second)
    await stop(first)
    assert server.holders == ["a", ""]
    assert b.led == []


def lost_at(server: LeaseServer, fault: Callable[[str], Reply | None], a: ElectedProcess) -> float:
    """When the work of ``a`` ended, the fault having begun after 5 s."""

    async def main() -> float:
        task = a.start()
        await asyncio.sleep(5)
        server.fault = fault
        with pytest.raises(LeadershipLost, match="could not be renewed for 10 s"):
            await task
        return now()

    return run(main())


def test_without_a_server_the_work_has_ended_before_the_lease_expires() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a", stopping=3.0)
    lost_at(server, lambda method: Reply(before=[Unreachable("PATCH", "/", "reset")]), a)
    last_renewal = server.writes[-1][0]
    assert a.led == [(0.0, last_renewal + 13.0)]
    assert server.holders == ["a"]


def test_a_server_that_never_answers_is_no_better_than_none() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a")
    lost_at(server, lambda method: silence(), a)
    assert a.led == [(0.0, server.writes[-1][0] + 10.0)]


def test_a_lease_counts_from_before_the_request_that_renewed_it() -> None:
    server = LeaseServer(latency=3.0)
    a = ElectedProcess(server, "a")
    lost_at(server, lambda method: silence() if now() > 20 else None, a)
    sent_at = server.writes[-1][0] - 3.0
    assert [ended for _, ended in a.led] == [sent_at + 10.0]


async def test_a_slow_server_is_good_enough() -> None:
    server = LeaseServer(latency=4.0)
    a = ElectedProcess(server, "a")
    task = a.start()
    await asyncio.sleep(300)
    assert not task.done()
    await stop(task)
    assert server.holders == ["a", ""]


def test_work_that_does_not_end_in_time_is_told_of_and_not_waited_for() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a", stopping=500.0)
    ended = lost_at(server, lambda method: silence(), a)
    assert ended == server.writes[-1][0] + 15.0
    assert a.led == []


async def test_a_stolen_lease_ends_the_work_at_the_next_renewal() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a")
    task = a.start()
    await asyncio.sleep(5)
    assert server.lease is not None
    server.put({**server.lease["spec"], "holderIdentity": "thief"})
    with pytest.raises(Deposed, match="held by thief"):
        await task
    assert a.led == [(0.0, 6.0)]
    assert server.holders == ["a", "thief"]


async def test_a_deleted_lease_is_made_again_by_its_leader() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a")
    task = a.start()
    await asyncio.sleep(5)
    server.lease = None
    await asyncio.sleep(60)
    assert not task.done()
    await stop(task)
    assert server.holders == ["a", ""]


WITHOUT_NAMESPACE = "there is no namespace ns for the Lease: create it, or choose another one"


async def test_without_its_namespace_it_ends_and_says_what_to_do() -> None:
    server = LeaseServer(fault=lambda method: failure(404, "NotFound"))
    with pytest.raises(NoNamespace) as told:
        await ElectedProcess(server, "a").start()
    assert str(told.value) == WITHOUT_NAMESPACE
    assert server.holders == []


async def test_the_work_ends_when_the_namespace_of_the_lease_is_deleted() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a")
    task = a.start()
    await asyncio.sleep(5)
    server.fault = lambda method: failure(404, "NotFound")
    with pytest.raises(NoNamespace, match=WITHOUT_NAMESPACE):
        await task
    assert a.led == [(0.0, 8.0)]


async def test_a_renewal_whose_answer_was_lost_costs_nothing() -> None:
    server = LeaseServer()
    a = ElectedProcess(server, "a")
    lost: list[float] = []

    def lose_one(method: str) -> Reply | None:
        if method != "PATCH" or lost:
            return None
        lost.append(now())
        assert server.lease is not None
        server.put(server.lease["spec"])
        return Reply(before=[Unreachable("PATCH", "/", "reset")])

    task = a.start()
    server.fault = lose_one
    await asyncio.sleep(60)
    assert not task.done()
    await stop(task)
    assert lost == [2.0]
    assert server.holders == ["a", ""]


async def test_when_both_create_the_lease_at_once_one_leads() -> None:
    server = LeaseServer(latency=1.0)
    a, b = ElectedProcess(server, "a"), ElectedProcess(server, "b")
    tasks = [a.start(), b.start()]
    await asyncio.sleep(30)
    for task in reversed(tasks):
        await stop(task)
    assert server.holders == ["a", ""]
    assert b.led == []


async def test_work_that_returns_ends_the_run_and_gives_the_lease_back() -> None:
    server = LeaseServer()

    async def briefly() -> None:
        await asyncio.sleep(7)

    await ElectedProcess(server, "a").start(briefly)
    assert now() == 7.0
    assert server.holders == ["a", ""]


async def test_work_that_fails_gives_the_lease_back_and_its_error_out() -> None:
    server = LeaseServer()

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError("broken")

    with capture_logs() as lines, pytest.raises(ValueError, match="broken"):
        await ElectedProcess(server, "a").start(fail)
    assert server.holders == ["a", ""]
    assert [each["error"] for each in lines if each["log_level"] == "error"] == [
        "ValueError('broken')"
    ]


async def test_the_lease_is_renewed_while_work_takes_long_to_stop() -> None:
    server = LeaseServer()
    a, b = ElectedProcess(server, "a", stopping=40.0), ElectedProcess(server, "b")
    first = a.start()
    await asyncio.sleep(1)
    second = b.start()
    await asyncio.sleep(10)
    await stop(first)
    await asyncio.sleep(5)
    await stop(second)
    assert a.led == [(0.0, 51.0)]
    assert b.led[0][0] >= 51.0


@pytest.mark.parametrize(
    "times",
    [
        {"renew_deadline": 15.0},
        {"retry_period": 10.0},
        {"retry_period": 0.0},
        {"lease_duration": 15.5},
    ],
)
def test_times_that_cannot_work_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"needed|whole seconds"):
        LeaderElectionSettings("l", "ns", **times)


def killed(server: LeaseServer, name: str) -> None:
    """A process got the Lease and was killed just now."""
    times = dict.fromkeys(("acquireTime", "renewTime"), micro_time(EPOCH))
    server.put({"holderIdentity": name, "leaseDurationSeconds": 15, **times})


@pytest.mark.parametrize(
    ("container", "at_once"),
    [
        pytest.param("host_uid-a_", True, id="the same container"),
        pytest.param("host_uid-b_", False, id="another pod of that name"),
        pytest.param("", False, id="no pod"),
    ],
)
async def test_only_the_next_process_of_a_container_takes_the_lease_from_a_dead_one_at_once(
    container: str, at_once: bool
) -> None:
    server = LeaseServer()
    killed(server, "host_uid-a_1")
    task = ElectedProcess(server, f"{container}2", container=container).start()
    await asyncio.sleep(5)
    assert (server.holders[-1] == f"{container}2") == at_once
    await asyncio.sleep(15)
    assert server.holders[-1] == f"{container}2"
    await stop(task)


async def test_who_has_led_takes_the_lease_from_no_process_of_its_container() -> None:
    """That process came later: with two at once, each would take it from the other for ever."""
    server = LeaseServer()
    candidate = ElectedProcess(server, "host_uid_1", container="host_uid_")
    election = candidate.election()
    task = asyncio.create_task(election.run(candidate.work))
    await asyncio.sleep(5)
    killed(server, "host_uid_2")
    with pytest.raises(Deposed):
        await task
    task = asyncio.create_task(election.run(candidate.work))
    await asyncio.sleep(5)
    assert server.holders == ["host_uid_1", "host_uid_2"]
    await stop(task)


async def test_a_last_write_of_the_dead_process_only_delays_its_successor() -> None:
    server, late = LeaseServer(), iter([None])
    killed(server, "host_uid_1")

    def arrives(method: str) -> None:
        if method == "PATCH" and next(late, "once") is None:
            killed(server, "host_uid_1")

    server.fault = arrives
    task = ElectedProcess(server, "host_uid_2", container="host_uid_").start()
    await asyncio.sleep(5)
    assert server.holders == ["host_uid_1", "host_uid_2"]
    await stop(task)


async def test_a_lease_that_goes_back_ends_leader_and_standby() -> None:
    """etcd was restored from a backup. What each process knows belongs to a lost history."""
    server = LeaseServer()
    leader, standby = ElectedProcess(server, "a"), ElectedProcess(server, "b")
    tasks = [leader.start(), standby.start()]
    await asyncio.sleep(60)
    backup = server.lease, server.version
    await asyncio.sleep(60)
    server.lease, server.version = backup
    for task in tasks:
        with pytest.raises(HistoryLost, match=r"went back from version .*restored from a backup"):
            await task
    assert [ended for _, ended in leader.led] == [pytest.approx(now(), abs=10)]
