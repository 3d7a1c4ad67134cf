"""The process of ``claimctl reschedule --descheduling-interval``."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

import structlog

from claimctl import __version__
from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.process import Stop, exporting, health_server, who_am_i
from claimctl.cli.session import connection_of
from claimctl.controller.dialect.api_versions import look
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeadershipLost
from claimctl.kube.transport import HttpTransport
from claimctl.reschedule.command.runner import COMPONENT, runner_of
from claimctl.reschedule.command.wanted import RescheduleOptions
from claimctl.reschedule.plan.policy import Policy
from claimctl.reschedule.run.loop import Loop, election_settings
from claimctl.telemetry.health import Probes
from claimctl.telemetry.logs import configure
from claimctl.telemetry.settings import from_environment

log = structlog.get_logger(__name__)


def run_for_ever(wanted: RescheduleOptions, access: Access, policy: Policy) -> int:
    """Run until SIGTERM or SIGINT, or until another process has the Lease: then CommandFailed."""
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
        await look(client)
        election = LeaderElection(
            client, clock, election_settings(wanted.lease_namespace), identity
        )
        events = EventRecorder(client, clock, COMPONENT, identity)
        runner = runner_of(client, clock, wanted, policy, events)
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
