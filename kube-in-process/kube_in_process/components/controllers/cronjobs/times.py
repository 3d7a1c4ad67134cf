"""When a CronJob is due. Pure functions.

The rules are those of k8s.io/kubernetes/pkg/controller/cronjob (utils.go).
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from kube_in_process.objects import Object
from kube_in_process.text.cron import Schedule, parse

TOO_MANY = 100


@dataclass(frozen=True, slots=True)
class Due:
    """The time that is due last, or None, and how many times were missed; and the next time."""

    last: datetime | None
    missed: int
    next: datetime | None


def zone_of(cron_job: Object) -> tzinfo:
    """The time zone of the schedule. Raises ZoneInfoNotFoundError."""
    given = cron_job["spec"].get("timeZone")
    return zoneinfo.ZoneInfo(given) if given else UTC


def due(cron_job: Object, now: datetime) -> Due:
    """Raises BadSchedule or ZoneInfoNotFoundError."""
    schedule, zone = parse(cron_job["spec"]["schedule"]), zone_of(cron_job)
    last, missed = _last(schedule, zone, _since(cron_job, now), now)
    return Due(last, missed, schedule.after(last or _since(cron_job, now), zone))


def _since(cron_job: Object, now: datetime) -> datetime:
    """From when on times count: what is later than the deadline is never made up for."""
    status = cron_job.get("status") or {}
    given = status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
    since = datetime.fromisoformat(given)
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if deadline is None:
        return since
    return max(since, now - timedelta(seconds=deadline))


def _last(
    schedule: Schedule, zone: tzinfo, since: datetime, now: datetime
) -> tuple[datetime | None, int]:
    first = schedule.after(since, zone)
    if first is None or first > now:
        return None, 0
    second = schedule.after(first, zone)
    if second is None or second > now:
        return first, 1
    # as upstream counts: as if all times were as far apart as the first two
    missed = (now - first) // (second - first) + 1
    return _latest(schedule, zone, first, now), missed


def _latest(schedule: Schedule, zone: tzinfo, first: datetime, now: datetime) -> datetime:
    """The latest time from ``first`` on that is not after now. There may be very many."""
    span = timedelta(minutes=1)
    time = schedule.after(now - span, zone)
    while (time is None or time > now) and now - span > first:
        span *= 2
        time = schedule.after(now - span, zone)
    last = first
    while time is not None and time <= now:
        last, time = max(time, first), schedule.after(time, zone)
    return last


def job_name(cron_job: Object, scheduled: datetime) -> str:
    minutes = int(scheduled.timestamp()) // 60
    return f"{cron_job['metadata']['name']}-{minutes}"
