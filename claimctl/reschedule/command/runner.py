"""The runner of ``claimctl reschedule``, from its flags and its policy."""

from __future__ import annotations

from random import Random

from claimctl.kube.client import Client
from claimctl.kube.events import EventRecorder
from claimctl.reschedule.command.wanted import RescheduleOptions
from claimctl.reschedule.plan.planning import plan
from claimctl.reschedule.policyfile.model import CheckedPolicy
from claimctl.reschedule.policyfile.translating import translated
from claimctl.reschedule.run.records import Records
from claimctl.reschedule.run.run import Runner
from claimctl.reschedule.run.settings import RunSettings
from claimctl.reschedule.run.signs import Signs
from claimctl.wire.seams import Clock

COMPONENT = "claimctl.io/rescheduler"
"""The reportingController of Events."""


def settings_of(wanted: RescheduleOptions, checked: CheckedPolicy) -> RunSettings:
    policy = translated(checked)
    return RunSettings(
        deadline=wanted.deadline,
        max_unavailable=policy.max_unavailable_per_workload,
        grace_period=policy.grace_period_seconds,
    )


def runner_of(
    client: Client,
    clock: Clock,
    wanted: RescheduleOptions,
    checked: CheckedPolicy,
    events: EventRecorder | None = None,
) -> Runner:
    """A process that makes runs by the policy."""
    policy = translated(checked)
    return Runner(
        client=client,
        clock=clock,
        policy=policy,
        planner=plan,
        records=Records(client, wanted.record),
        settings=settings_of(wanted, checked),
        signs=Signs(client.telemetry, events, failures=policy.eviction_failure_event),
        lease_namespace=wanted.lease_namespace,
        rng=Random(),
    )
