"""Plays the commands of docs/runbooks word for word, in a shell, against a test's cluster."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e import warm
from tests.e2e.commands import CommandAnswer
from tests.e2e.harness import chosen
from tests.support.runbooks import FOLDER, PageCommand, Section, sections

SECONDS = 180.0


@dataclass
class Runbook:
    """One page, and which of its sections were played.

    Args:
        page: the name of the file in docs/runbooks.
        kubeconfig: what ``claimctl`` and ``kubectl`` use.
    """

    page: str
    kubeconfig: Path
    played: set[str] = field(default_factory=set)

    @property
    def sections(self) -> Mapping[str, Section]:
        return sections(self.page)

    async def play(self, title: str) -> list[CommandAnswer]:
        """Run each command of the section; each must end with the exit code on the page."""
        self.played.add(title)
        return [await self._run(each) for each in self.sections[title].commands]

    async def _run(self, command: PageCommand) -> CommandAnswer:
        if command.text.startswith("kubectl ") and shutil.which("kubectl") is None:
            pytest.skip("there is no kubectl on this machine")
        answer = await run(command.text, self.kubeconfig)
        where = f"{self.page}:{command.line}: {command.text}"
        assert answer.code == command.exit_code, f"{where}: {answer}"
        return answer

    def expect_all_played(self) -> None:
        assert set(self.sections) == self.played


def programs(*, signals: bool = False) -> str:
    """The PATH of a shell, first the folder with the ``claimctl`` under test.

    Args:
        signals: whether it must get signals.
    """
    installed = Path(sys.executable).parent
    # beside a real cluster tests run in processes of their own, each with few commands
    cold = signals or chosen.get() is not None
    ours = installed if cold else warm.folder()
    return os.pathsep.join((str(ours), str(installed), os.environ["PATH"]))


async def run(text: str, kubeconfig: Path, seconds: float = SECONDS) -> CommandAnswer:
    """Run one line in a shell, in the folder of the project, with the ``claimctl`` under test.

    If the time is over, or the test is cancelled, the shell and all that it started are killed.
    """
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        text,
        cwd=FOLDER.parents[1],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PATH": programs(),
            "KUBECONFIG": str(kubeconfig),
            "NO_COLOR": "1",
        },
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    assert process.returncode is not None
    return CommandAnswer(process.returncode, out.decode(), err.decode())
