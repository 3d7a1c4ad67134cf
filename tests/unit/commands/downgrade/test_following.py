"""What the commands of a plan say when they are ended before the plan is carried out."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.following import time_limit

STAYS = "; what is done stays, and another run continues"


@pytest.mark.parametrize(("dry_run", "stays"), [(False, STAYS), (True, "")])
async def test_ctrl_c_and_the_time_limit_say_what_becomes_of_the_plan(
    dry_run: bool, stays: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def carry_out(seconds: float) -> None:
        async with time_limit(PlanFlags(timeout=seconds, dry_run=dry_run)):
            began.set()
            await asyncio.Event().wait()

    began = asyncio.Event()
    task = asyncio.create_task(carry_out(900.0))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert capsys.readouterr().err == f"interrupted{stays}\n"
    with pytest.raises(CommandFailed, match=f"--timeout: not finished after 0 s{stays}$"):
        await carry_out(0.0)
    assert capsys.readouterr().err == ""
