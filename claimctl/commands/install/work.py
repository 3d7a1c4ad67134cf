"""``claimctl install``: chooses manifests by the flags, and prints or applies them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import typer

from claimctl.cli.access import Access
from claimctl.cli.durations import seconds as parsed_duration
from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.extensions import required
from claimctl.cli.formats import Output
from claimctl.cli.objects import printed_name
from claimctl.cli.output import print_data
from claimctl.cli.printer import print_lines, print_whole, say
from claimctl.cli.progress import progress
from claimctl.cli.session import Session, in_session
from claimctl.commands.claims.election import State, election
from claimctl.commands.install.apply import ApplyOutcome, Installer
from claimctl.commands.install.components import (
    BASE,
    DEFAULT_IMAGE,
    FOLDERS,
    Choice,
    chosen,
)
from claimctl.commands.install.rescheduling import SCHEDULE, Rescheduling
from claimctl.wire.base import Object
from claimctl.yaml_text import dumped

_CRON = re.compile(
    r"@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
    r"|[-0-9A-Za-z*/,?]+( [-0-9A-Za-z*/,?]+){4}"
)
"""What looks like a schedule of a CronJob; the server checks the rest."""


def rescheduling_of(policy: Path | None, schedule: str, *, evicts: bool) -> Rescheduling | None:
    """What the flags ask for; None without --reschedule. UsageError if the policy cannot be used,
    or a flag is wrong."""
    if policy is None:
        for flag, is_given in {"--reschedule-schedule": schedule, "--evict": evicts}.items():
            if is_given:
                raise UsageError(f"{flag}: only with --reschedule, which names a policy file")
        return None
    required("reschedule").check_policy(policy)  # takes only what claimctl reschedule takes
    text = policy.read_text(encoding="utf-8")
    interval = schedule if _is_duration(schedule) else ""
    if schedule and not interval and not _CRON.fullmatch(schedule):
        raise UsageError(
            f"--reschedule-schedule: {schedule!r} is neither a schedule like '*/30 * * * *' nor a "
            "duration like 5m"
        )
    cron = schedule if schedule and not interval else SCHEDULE
    return Rescheduling(text, schedule=cron, interval=interval, evicts=evicts)


def _is_duration(text: str) -> bool:
    try:
        return bool(text) and parsed_duration(text) > 0
    except typer.BadParameter:
        return False


def print_choice(choice: Choice, output: Output) -> None:
    """Print the manifests of a choice: as a stream in YAML, and as a List in other formats.
    CommandFailed if this installation of claimctl has none."""
    documents = chosen(choice)
    if output == Output.YAML:
        print_whole(dumped(*documents))
    else:
        every = {"apiVersion": "v1", "kind": "List", "items": documents}
        print_data(output, every, map(printed_name, documents))


def choose(
    components: list[str] | None,
    namespace: str,
    image: str,
    runbook_url: str = "",
    rescheduling: tuple[Path | None, str, bool] = (None, "", False),
) -> Choice:
    """What the flags choose; UsageError if a value cannot be used."""
    wanted: list[str] = []
    for name in components or ["base"]:
        if name != "base" and name not in FOLDERS:
            known = ", ".join(
                (*BASE, "base", *(folder for folder in FOLDERS if folder not in BASE))
            )
            raise UsageError(f"--component: {name!r} is not one of {known}")
        wanted += BASE if name == "base" else [name]
    if any(letter.isspace() for letter in image) or image.endswith((":", "@", "/")):
        raise UsageError(f"--image: {image!r} is not the name of an image: REGISTRY/NAME:TAG")
    if runbook_url and not re.fullmatch(r"https?://\S*\{alert\}\S*", runbook_url):
        raise UsageError(
            f"--runbook-url: {runbook_url!r} is not a URL with the word {{alert}}, like "
            "https://docs.example.com/claimctl/{alert}"
        )
    policy, schedule, evicts = rescheduling
    return Choice(
        tuple(dict.fromkeys(wanted)),
        namespace,
        image or DEFAULT_IMAGE,
        runbook_url,
        rescheduling_of(policy, schedule, evicts=evicts),
    )


LEASE_SECONDS = 30.0
"""How long a new controller may wait for its Lease, which another one may have held for 15 s."""
ANSWER_SECONDS = 60
"""How long all requests together may take, without the time of --wait."""


def install(access: Access, choice: Choice, *, seconds: float, dry_run: bool) -> None:
    """Apply the manifests, and wait for the controller for so long; 0: not at all."""
    try:
        in_session(access, _carry_out, None, chosen(choice), seconds, dry_run=dry_run)
    except TimeoutError as error:
        raise CommandFailed(f"the server did not answer within {ANSWER_SECONDS} s") from error


async def _carry_out(
    session: Session, documents: list[Object], seconds: float, *, dry_run: bool
) -> None:
    suffix = " (dry run)" if dry_run else ""

    def tell(name: str, outcome: ApplyOutcome) -> None:
        """Print a result as kubectl does."""
        print_lines(f"{name} {outcome}{suffix}")

    installer = Installer(session.transport, session.clock, tell)
    async with asyncio.timeout(ANSWER_SECONDS):
        await installer.check(documents)
        await installer.apply(documents, dry_run=dry_run)
    if seconds:
        with progress("waiting until the controller is available"):
            async with asyncio.timeout(seconds + ANSWER_SECONDS):
                await installer.wait(documents, seconds)
                await until_one_leads(session)
        say("claimctl is installed, and a controller acts")


async def until_one_leads(session: Session) -> None:
    """Wait until a controller has its Lease: only the leader acts. Pods that are ready may wait for
    the Lease of a controller that has ended."""
    end = session.clock.monotonic() + LEASE_SECONDS
    while True:
        now = await election(session.client, session.clock.now())
        if now.state is State.ACTING or not now.readable:
            return
        if session.clock.monotonic() >= end:
            raise CommandFailed(f"its pods are ready, but no controller acts: {now.message}")
        await session.clock.sleep(1.0)
