"""Carries out ``claimctl reschedule``: one run, a dry run, a question, runs again and again, or
the removal of taints."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import structlog

from claimctl import __version__
from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.printer import say
from claimctl.cli.process import Stop, exporting, health_server, who_am_i
from claimctl.cli.session import Session, connection_of, in_session
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.discovery import use_served_versions
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeadershipLost
from claimctl.kube.transport import HttpTransport
from claimctl.telemetry.health import Probes
from claimctl.telemetry.logs import configure
from claimctl.telemetry.settings import from_environment
from claimctl.wire.seams import Clock
from claimctl_reschedule.command.view import conclude, explain, show
from claimctl_reschedule.command.wanted import DryRun, RescheduleOptions
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import UnknownPriorityClass, plan
from claimctl_reschedule.plan.policy import Policy
from claimctl_reschedule.policyfile.problems import PolicyError
from claimctl_reschedule.policyfile.reading import read
from claimctl_reschedule.policyfile.v1alpha2 import CheckedPolicy
from claimctl_reschedule.run import planfile
from claimctl_reschedule.run.avoiding import Avoiding
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.loop import Loop, election_settings
from claimctl_reschedule.run.observing import cluster_uid
from claimctl_reschedule.run.planfile import PlanError
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import MoveStep, RunReport
from claimctl_reschedule.run.taints import Taints

log = structlog.get_logger(__name__)

COMPONENT = "claimctl.io/rescheduler"
"""The reportingController of Events."""


def carry_out(wanted: RescheduleOptions, access: Access) -> int:
    """Do what the flags ask for; the exit code. Raises UsageError: the policy or the plan cannot be
    used; no request was sent for a bad policy."""
    if wanted.release_taints:
        return in_session(access, lambda session: _release(session, wanted))
    assert wanted.policy is not None
    checked = policy_of(wanted.policy, skip_unsupported=wanted.skip_unsupported)
    given = _given_plan(wanted.plan) if wanted.plan is not None else None
    for line in (*checked.notes, *(f"left out: {part}" for part in checked.skipped)):
        say(line)
    try:
        if wanted.interval:
            return _run_for_ever(wanted, access, checked.policy)
        return in_session(access, lambda session: _once(session, wanted, checked.policy, given))
    except UnknownPriorityClass as error:
        raise UsageError(f"{wanted.policy}: {error}") from None


def policy_of(path: Path, *, skip_unsupported: bool = False) -> CheckedPolicy:
    """The policy of a file. Each fault is one line on stderr, and the last one a UsageError."""
    try:
        return read(path, skip_unsupported=skip_unsupported)
    except PolicyError as error:
        *first, last = (f"{path}: {line}" for line in error.problems)
        for line in first:
            say(f"error: {line}")
        raise UsageError(last) from None


def _given_plan(path: Path) -> Plan:
    try:
        return planfile.parse(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except PlanError as error:
        raise UsageError(f"{path}: {error}") from None


def _runner(
    client: Client, clock: Clock, wanted: RescheduleOptions, policy: Policy, events: EventRecorder
) -> Runner:
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


async def _once(
    session: Session, wanted: RescheduleOptions, policy: Policy, given: Plan | None
) -> int:
    events = EventRecorder(session.client, session.clock, COMPONENT, who_am_i())
    runner = _runner(session.client, session.clock, wanted, policy, events)
    if given is not None:
        try:
            planfile.check(given, await cluster_uid(session.client), session.clock.now())
        except PlanError as error:
            raise UsageError(f"{wanted.plan}: {error}") from None
    if wanted.why:
        return await explain(session.client, await runner.plan(), wanted)
    if wanted.dry_run is not None:
        report = await _dry(runner, wanted, given)
    else:
        report = await _real(runner, events, wanted, given)
    show(report, wanted)
    conclude(report, wanted)
    return exit_code(report)


async def _dry(runner: Runner, wanted: RescheduleOptions, given: Plan | None) -> RunReport:
    made = given or await runner.plan()
    if (path := wanted.plan_out) is not None:
        text = json.dumps(planfile.document(made), indent=2) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"--plan-out: cannot write {path}: {error.strerror}") from None
    if wanted.dry_run is DryRun.SERVER:
        return await runner.rehearse(made)
    return RunReport(made, [MoveStep(move) for move in made.moves])


async def _real(
    runner: Runner, events: EventRecorder, wanted: RescheduleOptions, given: Plan | None
) -> RunReport:
    """A run that acts. Ctrl-C lets it finish the write in hand and remove its taints."""
    stop = Stop()
    runner.stop = stop.event
    stop.listen()
    try:
        if given is None:
            return await runner.run()
        await runner.sweep()
        return await runner.execute(given)
    finally:
        stop.ignore()
        await events.drain()


async def _release(session: Session, wanted: RescheduleOptions) -> int:
    records = Records(session.client, wanted.record)
    released = await Avoiding(session.client, session.clock, records).stop()
    removed = await Taints(session.client, session.clock, records).sweep(everything=True)
    say(f"{removed} taints removed, {released} braked pods released")
    return ExitCode.OK


def exit_code(report: RunReport) -> int:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failure:
        return ExitCode.FAILED
    needs_action = report.blocked or report.unhelped or report.is_stale
    return ExitCode.FINDINGS if needs_action else ExitCode.OK


def _run_for_ever(wanted: RescheduleOptions, access: Access, policy: Policy) -> int:
    """Run until SIGTERM or SIGINT. CommandFailed if another process has the Lease, or if there is
    no namespace for it."""
    configure()
    try:
        received = asyncio.run(_serve(wanted, access, policy))
    except LeadershipLost as error:
        raise CommandFailed(str(error)) from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK


async def _serve(
    wanted: RescheduleOptions, access: Access, policy: Policy
) -> signal.Signals | None:
    connection = connection_of(access)
    clock, identity = LoopClock(), who_am_i()
    async with AsyncExitStack() as stack:
        telemetry = stack.enter_context(exporting(from_environment()))
        transport = await stack.enter_async_context(HttpTransport(connection))
        client = Client(transport, clock, telemetry)
        await use_served_versions(client)
        election = LeaderElection(
            client, clock, election_settings(wanted.lease_namespace), identity
        )
        events = EventRecorder(client, clock, COMPONENT, identity)
        runner = _runner(client, clock, wanted, policy, events)
        probes = Probes(metrics=telemetry.registry)
        await stack.enter_async_context(health_server(wanted.bind_address, probes))
        stop = Stop()
        runner.stop = stop.event
        log.info(
            "starting", version=__version__, server=connection.server, policy=str(wanted.policy)
        )
        stop.listen()
        try:
            dry_run = wanted.dry_run is not None
            await Loop(runner, election, wanted.interval, events, dry_run=dry_run).run()
        finally:
            stop.ignore()
    return stop.received
