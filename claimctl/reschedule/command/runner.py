"""The runner of ``claimctl reschedule``, from its flags and its policy file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import typer

from claimctl.cli.errors import UsageError
from claimctl.kube.client import Client
from claimctl.kube.events import EventRecorder
from claimctl.reschedule.command.wanted import RescheduleOptions
from claimctl.reschedule.plan.planning import plan
from claimctl.reschedule.plan.policy import Policy
from claimctl.reschedule.policyfile.problems import PolicyError
from claimctl.reschedule.policyfile.reading import read
from claimctl.reschedule.policyfile.v1alpha2 import CheckedPolicy
from claimctl.reschedule.run.execution import RunSettings
from claimctl.reschedule.run.records import Records
from claimctl.reschedule.run.run import Runner
from claimctl.reschedule.run.signs import Signs
from claimctl.wire.seams import Clock

COMPONENT = "claimctl.io/rescheduler"
"""The reportingController of Events."""


def policy_of(path: Path, *, skip_unsupported: bool = False) -> CheckedPolicy:
    """The policy of a file. Each fault is one line on stderr, and the last one a UsageError."""
    try:
        return read(path, skip_unsupported=skip_unsupported)
    except PolicyError as error:
        *first, last = (f"{path}: {line}" for line in error.problems)
        for line in first:
            typer.echo(f"error: {line}", err=True)
        raise UsageError(last) from None


def runner_of(
    client: Client, clock: Clock, wanted: RescheduleOptions, policy: Policy, events: EventRecorder
) -> Runner:
    """A process that makes runs by the policy."""
    return Runner(
        client=client,
        clock=clock,
        policy=policy,
        planner=plan,
        records=Records(client, wanted.record),
        settings=RunSettings(
            deadline=wanted.deadline,
            max_unavailable=policy.max_unavailable_per_workload,
            grace_period=policy.grace_period_seconds,
        ),
        signs=Signs(client.telemetry, events, failures=policy.eviction_failure_event),
        lease_namespace=wanted.lease_namespace,
        rng=Random(),
    )
