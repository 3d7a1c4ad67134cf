"""How a command has a plan carried out: by the controller, or by one inside the command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.process import who_am_i
from claimctl.cli.progress import Progress, progress
from claimctl.cli.session import Session, if_interrupted
from claimctl.cli.successor import Successor
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.controller.dialect import DialectUnknown
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Duty, Settings
from claimctl.downgrade import plans
from claimctl.downgrade.plans import NoSuchNamespace, PlanRefused
from claimctl.installation import find_address
from claimctl.telemetry.logs import Level, configure
from claimctl.wire.reservations import DowngradePlan, DowngradePlanStatus

DRAIN_SECONDS = 2.0
"""A command that ends early leaves the plan as it is after any request, so it need not wait."""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """``by``: who carried the plan out, "controller" or "command"; empty for a dry run."""

    status: DowngradePlanStatus
    by: str = ""


@dataclass(frozen=True, slots=True)
class Follower:
    """Follows a plan while a controller acts."""

    session: Session
    successor: Successor
    line: Progress

    async def follow(self, plan: DowngradePlan) -> PlanResult:
        """Wait until the plan is carried out, and show how many claims it is through with.

        Raises:
            PlanRefused: the controller does not go on, or the plan was deleted.
            CommandFailed: no controller acts any more, and this command cannot do its work.
        """

        def show(status: DowngradePlanStatus) -> None:
            if status.phase:
                self.line.count(f"{status.phase}, claims", status.done, status.total)

        ensure = self.successor.ensure
        status = await plans.follow(self.session.client, plan, show, ensure=ensure)
        return PlanResult(status, "command" if self.successor.leading else "controller")


@asynccontextmanager
async def following(session: Session) -> AsyncIterator[Follower]:
    """Make sure that a controller acts, before a plan is written and until the block ends.

    Raises:
        CommandFailed: none acts, and the caller lacks a right that a controller needs.
    """
    configure(level=Level.ERROR)
    settings = Settings.checked(
        identity=f"downgrade_{who_am_i()}",
        lease_namespace=(await find_address(session.client)).namespace,
        duty=Duty.PLAN,
        drain_seconds=DRAIN_SECONDS,
    )
    make = partial(Manager, transport=session.transport, clock=session.clock)
    with progress("waiting for the controller") as line:
        successor = Successor(session.client, session.clock, settings, make, line.say)
        try:
            await successor.ensure()
            yield Follower(session, successor, line)
        finally:
            await successor.close()


@asynccontextmanager
async def time_limit(flags: PlanFlags) -> AsyncIterator[None]:
    """End the work within when the time of ``--timeout`` is over, and report why it cannot be done.

    Raises:
        CommandFailed: the time is over, there is another plan, the controller does not carry this
            one out, or the dialect of the cluster is not known.
        UsageError: a namespace does not exist.
    """
    stays = "" if flags.dry_run else "; what is done stays, and another run continues"
    try:
        with if_interrupted(f"interrupted{stays}"):
            async with asyncio.timeout(flags.timeout):
                yield
    except TimeoutError:
        raise CommandFailed(f"--timeout: not finished after {flags.timeout:g} s{stays}") from None
    except (PlanRefused, DialectUnknown) as refused:
        raise CommandFailed(str(refused)) from None
    except NoSuchNamespace as missing:
        raise UsageError(f"--namespace: the cluster has no namespace {missing}") from None
