"""What downgrade prepare costs, by the number of claims and pods, beside a loop over the claims.

An embedded API server in a process of its own has claims that running pods share without being
listed. ``claimctl downgrade prepare`` lists all of them, with the rights of the administrator. The
loop does what a script would do: for each claim one GET, one LIST of the workload's pods by their
label, and one PATCH. It records nothing and verifies nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.many_claims import ClaimsServer, Size, serving
from bench.table import BenchPart, Line, at_least, at_most, register, tell

ROOT = Path(__file__).parents[1]
PREPARE = (
    "-c",
    "import sys; from claimctl.cli.main import main; sys.exit(main())",
    "downgrade",
    "prepare",
    "-o",
    "json",
    "--kubeconfig",
)
LOOP = ("-m", "bench.downgrade_loop")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run: the whole process, imports included."""

    seconds: float
    memory: float
    """The peak, in megabytes."""
    requests: int
    claims: int

    @property
    def each(self) -> float:
        """Seconds for each claim."""
        return self.seconds / self.claims

    @property
    def requests_each(self) -> float:
        return self.requests / self.claims


def run(
    server: ClaimsServer, claims: int, arguments: Sequence[str], *, again: bool = False
) -> Cost:
    """Run a process of this interpreter to its end.

    Args:
        again: whether it may exit with 1, to be run again.

    Raises:
        RuntimeError: it did not exit with 0.
    """
    before, began = server.requests(), time.monotonic()
    process = _started(arguments)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    if process.returncode not in ((0, 1) if again else (0,)):
        raise RuntimeError(f"{' '.join(arguments)} exited with {process.returncode}")
    found = Cost(seconds, used.ru_maxrss / 1024, server.requests() - before, claims)
    tell(f"{claims} claims: {seconds:.1f} s, {found.memory:.0f} MB, {found.requests} requests")
    return found


def prepare(size: Size) -> Cost:
    """Prepare all claims of a fresh server."""
    with serving(size) as server:
        return run(server, size.claims, (*PREPARE, str(server.kubeconfig)))


def busy(size: Size, rate: float) -> tuple[int, list[str]]:
    """Prepare while pods start, end and are force-deleted; then once more, as the runbook says.

    Returns:
        How many pods started, ended or were force-deleted, and what is wrong with the lists.
    """
    with serving(size) as server:
        server.churn(rate)
        # a pod that starts unlisted between two looks at its claim fails that claim for now
        run(server, size.claims, (*PREPARE, str(server.kubeconfig)), again=True)
        server.churn(0)
        run(server, size.claims, (*PREPARE, str(server.kubeconfig)))
        actions, wrong = server.wrong()
    tell(f"{actions} pods started, ended or were force-deleted; wrong: {wrong[:5]}")
    return actions, wrong


def interrupted(size: Size, rate: float, kills: int) -> tuple[int, list[str]]:
    """The same, but the first runs are killed at different places, and then two run at once.

    Raises:
        RuntimeError: a run ended before it was killed.
    """
    with serving(size) as server:
        arguments = (*PREPARE, str(server.kubeconfig))
        server.churn(rate)
        for number in range(kills):
            # together, they do most of the work: all of them have something left to write
            _kill(server, arguments, writes=(number % 3 + 1) * size.claims // (2 * kills + 2))
        for each in [_started(arguments) for _ in range(2)]:
            if each.wait() not in (0, 1):
                raise RuntimeError(f"one of two runs exited with {each.returncode}")
        server.churn(0)
        run(server, size.claims, arguments)
        actions, wrong = server.wrong()
    tell(f"{kills} runs were killed, two ran at once; {actions} changes; wrong: {wrong[:5]}")
    return actions, wrong


def _kill(server: ClaimsServer, arguments: Sequence[str], writes: int) -> None:
    """Begin a run and kill it after so many writes."""
    before, process = server.writes(), _started(arguments)
    while server.writes() - before < writes:
        if process.poll() is not None:
            raise RuntimeError(f"it exited with {process.returncode} before it was killed")
        time.sleep(0.05)
    process.kill()
    process.wait()
    tell(f"killed after {server.writes() - before} writes")


def _started(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )


def loop(size: Size, claims: int) -> Cost:
    """Let the loop list the pods of the first claims of a fresh server."""
    with serving(size) as server:
        return run(server, claims, (*LOOP, str(server.kubeconfig), str(claims)))


def _measure(options: argparse.Namespace) -> Iterator[Line]:
    many = Size(options.claims, options.pods, shared=True)
    few = Size(options.claims, max(options.pods // 10, 1), shared=True)
    ours, fewer = prepare(many), prepare(few)
    theirs = loop(many, min(options.loop, options.claims))
    pods = many.claims * many.pods
    what = f"downgrade: {many.claims:,} claims, {pods:,} pods"
    beside = f"GET, LIST and PATCH of {theirs.claims} claims"
    yield Line(f"{what}: seconds", ours.seconds, unit="s")
    yield Line(
        f"{what}: time for each claim",
        1e3 * ours.each,
        beside,
        1e3 * theirs.each,
        "ms",
        at_least(1),
    )
    yield Line(
        f"{what}: requests for each claim",
        ours.requests_each,
        beside,
        theirs.requests_each,
        goal=at_most(2),
    )
    for dialect in ("native", "podgroup"):
        size = Size(options.claims, options.pods, dialect == "native", dialect == "podgroup")
        actions, wrong = busy(size, options.churn)
        during = f"{what} in {dialect}, while {actions:,} pods start and end"
        yield Line(f"{during}: wrong lists", len(wrong), goal=at_most(0))
        if options.kills:
            _, wrong = interrupted(size, options.churn, options.kills)
            during = f"{what} in {dialect}, {options.kills} runs killed, two at once"
            yield Line(f"{during}: wrong lists", len(wrong), goal=at_most(0))
    yield Line(
        f"{what}: memory",
        ours.memory,
        f"the same with {few.claims * few.pods:,} pods",
        fewer.memory,
        "MB",
        at_most(1.25),
    )


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--claims", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=50, help="pods of each claim")
    parser.add_argument("--churn", type=float, default=20.0, help="changes of pods a second")
    parser.add_argument("--kills", type=int, default=0, help="runs that are killed")
    parser.add_argument("--loop", type=int, default=50, help="claims that the loop prepares")


register(BenchPart("downgrade", "downgrade prepare with many claims and pods", _measure, _flags))
