"""docs/tutorial.md, word for word, in one shell, as a newcomer types it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.support.tutorial import PAGE, File, Typed, steps

pytestmark = [pytest.mark.alone, pytest.mark.real_time(600)]
SECONDS = 180.0
_END = "=== ended with"


@dataclass
class TutorialShell:
    """A shell that runs one command after the other and says how each ended."""

    process: asyncio.subprocess.Process
    answers: dict[str, list[str]] = field(default_factory=dict)
    """What the commands of each section printed, one text for each command."""

    async def type(self, command: Typed) -> None:
        """Run a command to its end; it must end with exit code 0."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command.text}\necho '{_END}' $?\n".encode())
        await self.process.stdin.drain()
        told = await self._answer()
        shown = "".join(told[:-1])
        assert told[-1].split()[-1] == "0", f"{command.text}: {shown}"
        self.answers.setdefault(command.section, []).append(shown)

    async def _answer(self) -> list[str]:
        assert self.process.stdout is not None
        told: list[str] = []
        async with asyncio.timeout(SECONDS):
            while not (told and told[-1].startswith(_END)):
                line = (await self.process.stdout.readline()).decode()
                assert line, f"the shell has ended: {told}"
                told.append(line)
        return told


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[TutorialShell]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "NO_COLOR": "1", "HOME": str(folder)}
    environment.pop("KUBECONFIG", None)
    process = await asyncio.create_subprocess_exec(
        "bash",
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield TutorialShell(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def until(path: Path, text: str) -> None:
    """Wait as a reader does who waits until the cluster is ready."""
    async with asyncio.timeout(SECONDS):
        for _ in count():
            if text in content(path):
                return
            await asyncio.sleep(0.2)


async def until_only(folder: Path, names: set[str]) -> None:
    """Wait until the cluster, which was told to stop, has removed its context and its lock."""
    async with asyncio.timeout(SECONDS):
        for _ in count():
            if files(folder) <= names:
                return
            await asyncio.sleep(0.2)


def content(path: Path) -> str:
    """What is in a file; nothing if there is none yet."""
    return path.read_text() if path.exists() else ""


def save(path: Path, text: str) -> None:
    path.write_text(text)


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if each.is_file()}


async def until_told(typed: TutorialShell, text: str) -> None:
    """Wait until ``claimctl get`` says this, as it does while a reader reads on."""
    again = Typed("claimctl get", "waiting")
    async with asyncio.timeout(SECONDS):
        while True:
            await typed.type(again)
            if text in typed.answers["waiting"][-1]:
                return
            await asyncio.sleep(0.5)


def device(told: str) -> str:
    found = re.search(r"node-\d/dev-\d", told)
    assert found, told
    return found.group()


def of_claim(told: str, name: str) -> str:
    """The line of ``claimctl get`` about a claim."""
    (line,) = (line for line in told.splitlines() if f"{name} " in line)
    return line


READ_ON = {"3": "deployments/train", "6": " Pending "}
"""By section: what ``claimctl get`` says after a while."""


async def test_every_command_of_the_tutorial(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    async with shell(tmp_path) as typed:
        for step in steps(PAGE.read_text(encoding="utf-8")):
            if isinstance(step, File):
                save(tmp_path / step.name, step.text)
                continue
            later = READ_ON.get(step.section[0])
            if later and step.text == "claimctl get":
                await until_told(typed, later)
            await typed.type(step)
            if "demo cluster" in step.text:
                await until(tmp_path / "tutorial.kubeconfig", "server:")
        expect_what_the_page_says(typed)
        await until_only(tmp_path, {"tutorial.kubeconfig"})


def expect_what_the_page_says(typed: TutorialShell) -> None:
    found = {section.split(".")[0]: told for section, told in typed.answers.items()}
    get, explain, tree, reservations, described = found["3"]
    assert "3 pods" in get
    assert "deployments/train" in get
    assert "Nothing is wrong." in explain
    assert tree.startswith("Deployment/train\n")
    assert "train-slice" in reservations
    assert "Reserved" in described
    had = device(get)
    assert device(found["4"][-1]) == had
    assert "IdleTimeoutNotReached" in found["5"][2]
    assert device(found["5"][-1]) == had
    assert " Pending " in found["6"][-1]
    timeline, _ = found["7"]
    assert re.search(rf"{had} +·*.?█+▒?·*\n", timeline)
    # garbage collection deletes the reservation, before or after the controller sees the end
    assert re.search(r"ReleaseIntent: the release begins \((WorkloadEnded|Withdrawn)\)", timeline)
    assert "Deallocated: " in timeline
    full, back = found["8"][4], found["8"][8]
    shard = "shard-2.sts.gpu.single-gpu"
    assert device(of_claim(back, shard)) == device(of_claim(full, shard))
    assert [" Pending " in of_claim(told, "train-slice") for told in (full, back)] == [True, True]
    crowded, planned, moved, spread = found["9"][-4:]
    assert crowded.count("node-0") == 6
    assert planned.count("RemoveDuplicates") == 4
    assert "4 evictions planned, 4 pods evicted" in moved
    assert [spread.count(f"node-{number}") for number in range(3)] == [2, 2, 2]
