"""CronJobs, and the schedules that they have; ReplicationControllers and tokens of accounts."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_in_process.components.controllers.cronjobs.times import due
from kube_in_process.text.cron import BadSchedule, parse

from .worlds import HOLD, Object, World, pod_spec

pytestmark = pytest.mark.kube_cluster(HOLD)

NEW_YORK = ZoneInfo("America/New_York")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "moment", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00"),
        ("*/15 3 * * *", "2026-01-01T03:40:00", "2026-01-01T03:45:00"),
        ("5/20 * * * *", "2026-01-01T00:26:00", "2026-01-01T00:45:00"),
        ("0 0 31 * ?", "2026-02-01T00:00:00", "2026-03-31T00:00:00"),
        ("0 0 29 FEB *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 13 * fri", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("0 9-17/4 * * mon-FRI", "2026-01-02T18:00:00", "2026-01-05T09:00:00"),
        ("@hourly", "2026-01-01T00:00:01", "2026-01-01T01:00:00"),
        ("@every 90s", "2026-01-01T00:00:00", "2026-01-01T00:01:30"),
    ],
)
def test_a_schedule_has_its_next_time(schedule: str, moment: str, expected: str) -> None:
    assert parse(schedule).after(at(moment)) == at(expected)


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@foo", "unrecognized descriptor: @foo"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_reason(schedule: str, why: str) -> None:
    """As 1.36.2 answers."""
    with pytest.raises(BadSchedule) as refused:
        parse(schedule)
    assert str(refused.value) == why


def test_an_hour_that_the_clocks_leave_out_has_no_time() -> None:
    schedule = parse("30 2 * * *")
    time = schedule.after(at("2026-03-08T06:00:00"), NEW_YORK)
    assert time is not None
    assert time.isoformat() == "2026-03-09T02:30:00-04:00"


@given(
    minutes=st.integers(1, 59),
    since=st.integers(0, 100_000),
    passed=st.integers(0, 1_000_000),
)
def test_the_last_missed_time_is_the_latest_before_now(
    minutes: int, since: int, passed: int
) -> None:
    start = datetime.fromtimestamp(since, UTC)
    now = datetime.fromtimestamp(since + passed, UTC)
    metadata = {"creationTimestamp": start.isoformat()}
    cron_job = {"metadata": metadata, "spec": {"schedule": f"*/{minutes} * * * *"}}
    times = due(cron_job, now)
    assert (times.last is None) == (times.missed == 0)
    assert times.next is not None
    assert times.next > now
    if times.last is not None:
        assert start < times.last <= now
        assert parse(f"*/{minutes} * * * *").after(times.last) == times.next


def cron_job(world: World, name: str, **spec: Any) -> Object:
    annotations = {"kube-in-process/run-seconds": str(spec.pop("seconds", 1))}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {**pod_spec(), "restartPolicy": "Never"},
    }
    job = {"spec": {"template": template}}
    return world.create("cronjobs", name, {"schedule": "*/10 * * * *", "jobTemplate": job, **spec})


def jobs(world: World) -> list[str]:
    return [job["metadata"]["name"] for job in world.api.list("jobs")]


async def test_a_cron_job_starts_jobs_and_keeps_the_last_three(world: World) -> None:
    cron_job(world, "c", timeZone="Asia/Tokyo")
    await world.passes(601)
    job = world.api.list("jobs")[0]
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2026-01-01T09:10:00+09:00"
    status = world.get("cronjobs", "c")["status"]
    assert [reference["name"] for reference in status["active"]] == [job["metadata"]["name"]]
    await world.passes(3660)
    assert len(jobs(world)) == 3
    status = world.get("cronjobs", "c")["status"]
    assert status["lastScheduleTime"] == "2026-01-01T01:10:00Z"
    assert "lastSuccessfulTime" in status


@pytest.mark.parametrize(
    ("policy", "there", "event"),
    [("Allow", 3, ""), ("Forbid", 1, "JobAlreadyActive"), ("Replace", 1, "SuccessfulDelete")],
)
async def test_the_policy_says_what_happens_to_a_job_that_still_runs(
    world: World, policy: str, there: int, event: str
) -> None:
    cron_job(world, "c", concurrencyPolicy=policy, seconds=100_000)
    await world.passes(1900)
    assert len(jobs(world)) == there
    assert len(world.get("cronjobs", "c")["status"]["active"]) == there
    assert not event or world.events(event)


async def test_a_suspended_cron_job_starts_nothing_and_makes_up_only_for_the_last_time(
    world: World,
) -> None:
    cron_job(world, "c", suspend=True)
    cron_job(world, "late", suspend=True, startingDeadlineSeconds=100)
    await world.passes(2000)
    assert jobs(world) == []
    for name in ("c", "late"):
        world.api.patch("cronjobs", "default", name, {"spec": {"suspend": False}})
    await world.passes(2)
    assert jobs(world) == ["c-29453790"]


async def test_a_replication_controller_keeps_its_pods(world: World) -> None:
    template = {"metadata": {"labels": {"app": "rc"}}, "spec": pod_spec()}
    spec = {"replicas": 2, "selector": {"app": "rc"}, "template": template}
    world.create("replicationcontrollers", "rc", spec)
    await world.passes(2)
    assert world.phases("rc") == ["Running", "Running"]
    status = world.get("replicationcontrollers", "rc")["status"]
    assert (status["readyReplicas"], "terminatingReplicas" in status) == (2, False)
    scale = world.api.patch(
        "replicationcontrollers", "default", "rc", {"spec": {"replicas": 1}}, "scale"
    )
    assert scale["status"]["selector"] == "app=rc"
    await world.passes(2)
    assert world.phases("rc") == ["Running"]


async def test_a_secret_gets_the_token_of_its_account(world: World) -> None:
    await world.passes(1)
    for account in ("default", "nobody"):
        annotations = {"kubernetes.io/service-account.name": account}
        metadata = {"name": account, "namespace": "default", "annotations": annotations}
        kind = "kubernetes.io/service-account-token"
        world.api.create("secrets", {"metadata": metadata, "type": kind})
    await world.passes(1)
    data = world.get("secrets", "default")["data"]
    assert sorted(data) == ["ca.crt", "namespace", "token"]
    token = b64decode(data["token"]).decode()
    review = world.api.create("tokenreviews", {"spec": {"token": token}})
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:default"
    assert world.api.find("secrets", "default", "nobody") is None
