"""The flags of ``claimctl install`` and ``claimctl manifests`` for ``claimctl reschedule``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from claimctl.commands.install.rescheduling import Rescheduling

RescheduleOption = Annotated[
    Path | None,
    typer.Option(
        "--reschedule",
        metavar="FILE",
        help="Also run claimctl reschedule in the cluster, with this policy file. Without --evict "
        "its runs only say what they would do. [default: none]",
    ),
]
ScheduleOption = Annotated[
    str,
    typer.Option(
        "--reschedule-schedule",
        metavar="SCHEDULE",
        help="When to reschedule. A schedule in cron's form makes a CronJob. A duration such as 5m "
        "makes a Deployment, which pauses for this time after each run. [default: */30 * * * *]",
    ),
]
EvictOption = Annotated[
    bool,
    typer.Option(
        "--evict", help="Let the runs of --reschedule evict pods. [default: they are dry runs]"
    ),
]
_CRON = re.compile(
    r"@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
    r"|[-0-9A-Za-z*/,?]+( [-0-9A-Za-z*/,?]+){4}"
)
"""What looks like a schedule of a CronJob; the server checks the rest."""


def rescheduling_of(policy: Path | None, schedule: str, *, evicts: bool) -> Rescheduling | None:
    """What the flags ask for; None without --reschedule.

    Raises:
        UsageError: the policy cannot be used, or a flag is wrong.
    """
    from claimctl.cli.errors import UsageError
    from claimctl.commands.install.rescheduling import SCHEDULE, Rescheduling

    if policy is None:
        for flag, is_given in {"--reschedule-schedule": schedule, "--evict": evicts}.items():
            if is_given:
                raise UsageError(f"{flag}: only with --reschedule, which names a policy file")
        return None
    text = _policy(policy)
    interval = schedule if _is_duration(schedule) else ""
    if schedule and not interval and not _CRON.fullmatch(schedule):
        raise UsageError(
            f"--reschedule-schedule: {schedule!r} is neither a schedule like '*/30 * * * *' nor a "
            "duration like 5m"
        )
    cron = schedule if schedule and not interval else SCHEDULE
    return Rescheduling(text, schedule=cron, interval=interval, evicts=evicts)


def _policy(path: Path) -> str:
    """The text of a policy that ``claimctl reschedule`` takes."""
    from claimctl.reschedule.command.policy import policy_of

    policy_of(path)
    return path.read_text(encoding="utf-8")


def _is_duration(text: str) -> bool:
    from claimctl.cli.access import seconds

    try:
        return bool(text) and seconds(text) > 0
    except typer.BadParameter:
        return False
