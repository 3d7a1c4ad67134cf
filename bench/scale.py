"""What the controller needs by the number of claims and pods, and what it does when idle.

The controller finds claims that running pods share, and holds each of them for its Deployment.
``scale`` measures it up to that point at two sizes, beside an earlier commit; the slope between
the sizes says what more claims would cost. ``idle`` measures it after that point.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import IO

from bench.many_claims import ClaimsServer, Size, serving
from bench.table import BenchPart, Goal, Line, at_least, at_most, medians, register, tell

ROOT = Path(__file__).parents[1]
BEFORE = "72917d8"
"""The last commit before releases at once, listing ahead and the checkpoint."""
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 600.0
LOOK_SECONDS = 1.0
BIG_PODS = 500_000


@dataclass(frozen=True, slots=True)
class Use:
    """What a controller has used, by the kernel."""

    cpu: float
    memory: float


class ControllerEnded(Exception):
    """The controller ended by itself. The text is the last line of its log."""


class ControllerRun:
    """A controller process."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self._process = process
        self._log = log

    def used(self) -> Use:
        """CPU seconds and peak megabytes, by the kernel. Linux only."""
        if self._process.poll() is not None:
            self._log.seek(0)
            raise ControllerEnded("".join(self._log.read().decode().splitlines()[-1:]))
        proc = Path(f"/proc/{self._process.pid}")
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / TICKS
        peak = re.search(r"VmHWM:\s+(\d+)", (proc / "status").read_text())
        return Use(cpu, int(peak[1]) / 1024 if peak else 0.0)


@contextmanager
def controller(server: ClaimsServer, code: Path) -> Iterator[ControllerRun]:
    """Run the controller of a source tree."""
    program = "import sys; from claimctl.cli.main import main; sys.exit(main())"
    flags = ["controller", "--kubeconfig", str(server.kubeconfig), "--bind-address", ""]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *flags, "--reservation-mode", "hold"],
            cwd=code,
            stderr=log,
        )
        try:
            yield ControllerRun(process, log)
        finally:
            process.terminate()
            process.wait()


@dataclass(frozen=True, slots=True)
class HoldFigures:
    """What it took to hold all claims."""

    size: Size
    use: Use
    writes: int


def hold(size: Size, code: Path) -> HoldFigures:
    """Let a controller hold all claims of a fresh server."""
    with serving(size) as server, controller(server, code) as process:
        seconds = until_held(server, process, size)
        held = HoldFigures(size, process.used(), server.counts().writes)
    text = f"{held.use.cpu:6.1f} CPU s, {held.use.memory:6.0f} MB, {held.writes} writes"
    tell(f"{size.claims} claims x {size.pods} pods: {text}, {seconds:.0f} s")
    return held


def until_held(server: ClaimsServer, process: ControllerRun, size: Size) -> float:
    """Seconds until all claims are held."""
    began = time.monotonic()
    while (found := server.counts()).held < size.claims:
        process.used()
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{found.held} of {size.claims} claims held after {PATIENCE:g} s")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


def _extract(commit: str, folder: str) -> Path | None:
    """The source tree of a commit; None if this is no clone that has it."""
    command = ["git", "archive", commit]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        tell(f"no lines beside {commit}: {done.stderr.decode().strip()}")
        return None
    with tarfile.open(fileobj=BytesIO(done.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return Path(folder)


@dataclass(frozen=True, slots=True)
class ScaleRound:
    """A controller with few claims and with many."""

    few: HoldFigures
    many: HoldFigures

    @property
    def slope(self) -> Use:
        """What one more claim costs."""
        claims = self.many.size.claims - self.few.size.claims
        cpu = self.many.use.cpu - self.few.use.cpu
        memory = self.many.use.memory - self.few.use.memory
        return Use(cpu / claims, memory / claims)

    def use_with(self, claims: float) -> Use:
        """What so many claims would cost by the slope."""
        more = claims - self.many.size.claims
        use, slope = self.many.use, self.slope
        return Use(use.cpu + more * slope.cpu, use.memory + more * slope.memory)


def _measured(options: argparse.Namespace) -> tuple[list[ScaleRound], list[ScaleRound]]:
    """The rounds of this tree and of the commit before, by turns: the machine has other work."""
    few, many = (Size(claims, options.pods) for claims in sorted(options.claims))
    ours: list[ScaleRound] = []
    theirs: list[ScaleRound] = []
    with tempfile.TemporaryDirectory() as folder:
        before = _extract(options.before, folder) if options.before else None
        for _ in range(options.rounds):
            ours.append(ScaleRound(hold(few, ROOT), hold(many, ROOT)))
            if before:
                theirs.append(ScaleRound(hold(few, before), hold(many, before)))
    return ours, theirs


def _scale(options: argparse.Namespace) -> Iterator[Line]:
    ours, theirs = _measured(options)
    beside, size = f"claimctl at {options.before}", ours[0].many.size

    def line(
        what: str, figure: Callable[[ScaleRound], float], unit: str = "", goal: Goal | None = None
    ) -> Line:
        mine = [figure(each) for each in ours]
        if not theirs:
            return Line(what, median(mine), unit=unit, runs=len(mine))
        return medians(what, mine, beside, [figure(each) for each in theirs], unit=unit, goal=goal)

    further = "scale: CPU for each further claim"
    yield line(further, lambda each: 1e3 * each.slope.cpu, "ms", at_least(2))
    what = f"scale: {size.claims:,} claims x {size.pods} pods"
    yield line(f"{what}: CPU", lambda each: each.many.use.cpu, "s")
    yield line(f"{what}: memory", lambda each: each.many.use.memory, "MB")
    yield line(f"{what}: writes", lambda each: each.many.writes)
    big, guess = BIG_PODS / options.pods, f"scale: by the slope, {BIG_PODS:,} pods"
    yield line(f"{guess}: CPU", lambda each: each.use_with(big).cpu, "s")
    yield line(f"{guess}: memory", lambda each: each.use_with(big).memory, "MB")


def _idle(options: argparse.Namespace) -> Iterator[Line]:
    size = Size(options.claims, options.pods // options.claims)
    with serving(size) as server, controller(server, ROOT) as process:
        until_held(server, process, size)
        time.sleep(options.rest)
        before, requests, began = process.used(), server.counts().requests, time.monotonic()
        time.sleep(options.seconds)
        after, seconds = process.used(), time.monotonic() - began
        more = server.counts().requests - requests
    load = 100 * (after.cpu - before.cpu) / seconds
    what = f"idle: {size.claims:,} claims, {size.claims * size.pods:,} pods, {seconds:.0f} s"
    yield Line(f"{what}: CPU of one core", load, unit="%", goal=at_most(1))
    yield Line(f"{what}: requests except the Lease's", more, goal=at_most(0))


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--claims", type=int, nargs=2, default=[500, 2_000], help="two sizes")
    parser.add_argument("--pods", type=int, default=50, help="pods of each claim")
    parser.add_argument("--rounds", type=int, default=3, help="of each code, by turns")
    parser.add_argument("--before", default=BEFORE, help="a commit to compare with; '' for none")


def _idle_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--claims", type=int, default=2_000)
    parser.add_argument("--pods", type=int, default=20_000, help="pods in all")
    parser.add_argument("--rest", type=float, default=15.0, help="seconds before the measurement")
    parser.add_argument("--seconds", type=float, default=60.0)


register(BenchPart("scale", "the controller with many claims and pods", _scale, _flags))
register(BenchPart("idle", "the controller when nothing happens", _idle, _idle_flags))
