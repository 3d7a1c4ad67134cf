"""Compares sequences of API requests on a real API server with etcd and on the embedded one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from random import Random

from judges.differential.asking import asking_sequence
from judges.differential.exemplars import exemplars
from judges.differential.kinds import kind_of, plain
from judges.differential.ledger import Allowance, allowances, allowed
from judges.differential.outcome import DifferentialFinding, PartOutcome, Run
from judges.differential.playing import Played, Side, play
from judges.differential.recorded import recorded_sequence
from judges.differential.recorder import Recorder, Sequence, Spoiled
from judges.differential.sequences import random_sequence
from judges.differential.server import RealServer, api_server_alone, connected, define
from judges.differential.shrinking import Shrinking
from judges.differential.templates import Step

Transcript = tuple[str, bool, list[Step]]
"""The name, whether managed fields are included, and the steps."""

_SHRINKING = 0.2
"""The share of the time for shrinking findings."""
_AT_ONCE = 20
_BATCH = 16
_WAITING = 64
"""How many transcripts may wait for the embedded server."""
_LENGTHS = (4, 8, 16, 24)
_RECORDED = 0.1
_ASKING = 0.03
"""The shares of sequences from recordings, and of sequences about the server itself."""


def compare(run: Run) -> PartOutcome:
    """Send sequences to both servers until the time is over.

    Raises:
        CannotStart: the real server does not start.
    """
    end = time.monotonic() + run.seconds
    with api_server_alone(run) as plane:

        async def go() -> PartOutcome:
            async with connected(plane) as server:
                comparison = Comparison(run, server)
                await comparison.until(end)
                return comparison.outcome

        return asyncio.run(go())


def sequences(run: Run) -> Iterator[Sequence]:
    """Random sequences without end; the same ones for the same seed."""
    rng = Random(run.seed)
    kinds = exemplars(run.programs.version, pod_groups=run.pod_groups)
    number = 0
    while True:
        kind = rng.choices(kinds, [kind.weight for kind in kinds])[0]
        name = f"s{run.seed}-{number}"
        number += 1
        chance = rng.random()
        if chance < _RECORDED:
            yield recorded_sequence(rng, name, run.programs.version)
            continue
        if chance < _RECORDED + _ASKING:
            yield asking_sequence(rng, kinds, name)
            continue
        length = rng.choice(_LENGTHS)
        yield random_sequence(rng, kind, name, run.programs.version, length)


@dataclass
class Comparison:
    """One run. Each sequence is played first on the real server, then on the embedded one."""

    run: Run
    server: RealServer
    outcome: PartOutcome = field(default_factory=lambda: PartOutcome("requests", "requests"))
    spoiled: int = 0
    _rules: list[Allowance] = field(default_factory=allowances)
    _sequences: dict[str, Sequence] = field(default_factory=dict)

    async def until(self, end: float) -> None:
        """Play until ``end``: several sequences at once on the real server, and the transcripts
        on the embedded one in another process. Recording waits while that process is behind."""
        await define(self.server)
        sequences_made = sequences(self.run)
        recorded: asyncio.Queue[Transcript] = asyncio.Queue(_WAITING)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            async with asyncio.TaskGroup() as group:
                judging = group.create_task(self._judging(pool, recorded))
                recording = [
                    group.create_task(self._recording(sequences_made, recorded, end))
                    for _ in range(_AT_ONCE)
                ]
                await asyncio.gather(*recording)
                await recorded.join()
                judging.cancel()
            await self._shrink(pool, end)

    async def _recording(
        self, sequences_made: Iterator[Sequence], recorded: asyncio.Queue[Transcript], end: float
    ) -> None:
        sampling = end - self.run.seconds * _SHRINKING
        while time.monotonic() < (sampling if self._found() else end):
            sequence = next(sequences_made)
            steps = await record(self.server, sequence)
            if steps is None:
                self.spoiled += 1
                continue
            self._sequences[sequence.name] = sequence
            await recorded.put((sequence.name, sequence.managed_fields, steps))

    async def _judging(
        self, pool: ProcessPoolExecutor, recorded: asyncio.Queue[Transcript]
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await recorded.get()]
            while len(batch) < _BATCH and not recorded.empty():
                batch.append(recorded.get_nowait())
            self._keep(batch)
            answers = await loop.run_in_executor(pool, _played, self._side, batch)
            for (name, _, _), played in zip(batch, answers, strict=True):
                self.judge(name, played)
                recorded.task_done()

    async def _shrink(self, pool: ProcessPoolExecutor, end: float) -> None:
        """Shrink findings, the most frequent kinds first, while there is time."""
        loop = asyncio.get_running_loop()

        async def look(sequence: Sequence) -> DifferentialFinding | None:
            steps = await record(self.server, sequence)
            if steps is None:
                return None
            transcript = (sequence.name, sequence.managed_fields, steps)
            played = await loop.run_in_executor(pool, _played, self._side, [transcript])
            findings = judged(played[0], PartOutcome("", ""), self._is_allowed)
            return next(
                (finding for finding in findings if not self._is_allowed(finding.kind)), None
            )

        shrinking = Shrinking(look, end)
        for kind, _ in self.outcome.kinds.most_common():
            finding = self.outcome.findings[kind]
            sequence = self._sequences.get(finding.sequence)
            if sequence is not None and not self._is_allowed(kind):
                smaller = await shrinking.smallest(sequence, finding)
                self.outcome.findings[kind] = smaller

    def _found(self) -> bool:
        """Whether there is a finding to shrink."""
        return not all(map(self._is_allowed, self.outcome.findings))

    def _is_allowed(self, kind: str) -> bool:
        return allowed(kind, self._rules)

    def _keep(self, transcripts: list[Transcript]) -> None:
        if self.run.keep is None:
            return
        with self.run.keep.open("a") as file:
            for name, managed, steps in transcripts:
                whole = {"name": name, "server": self.run.programs.text, "managedFields": managed}
                file.write(json.dumps({**whole, "steps": steps}) + "\n")

    @property
    def _side(self) -> Side:
        return Side(self.run.programs.version, self.run.pod_groups)

    def judge(self, name: str, played: list[Played]) -> None:
        """Record the first difference of a sequence; later ones may follow from it."""
        for finding in judged(played, self.outcome, self._is_allowed):
            self.outcome.note(replace(finding, sequence=name))


def judged(
    played: list[Played], outcome: PartOutcome, is_allowed: Callable[[str], bool]
) -> list[DifferentialFinding]:
    """The differences of a sequence up to the first one that is not allowed, or up to the first
    request that the embedded server refuses as not emulated."""
    outcome.compared += len(played)
    findings: list[DifferentialFinding] = []
    for step in played:
        if step.refused:
            outcome.refused[plain(step.refused)] += 1
            break
        if step.differences:
            findings.append(_finding(played, step))
            if not is_allowed(findings[-1].kind):
                break
    return findings


def _finding(played: list[Played], wrong: Played) -> DifferentialFinding:
    kind = kind_of(wrong.step, wrong.differences)
    before = played[: played.index(wrong)]
    lines = [_told(step.step) for step in before[-6:]]
    lines.append(_told(wrong.step))
    lines += [f"    {difference}" for difference in wrong.differences[:6]]
    return DifferentialFinding(kind, "\n".join(lines))


def _played(side: Side, transcripts: list[Transcript]) -> list[list[Played]]:
    return [play(side.server(), name, steps, fields) for name, fields, steps in transcripts]


async def record(server: RealServer, sequence: Sequence) -> list[Step] | None:
    """The transcript of a sequence; None if the server was too slow."""
    try:
        return await Recorder(server, sequence).run()
    except Spoiled:
        return None


def _told(step: Step) -> str:
    request = step["request"]
    body = json.dumps(request["body"]) if "body" in request else ""
    media = request.get("headers", {}).get("content-type", "")
    status = step["response"]["status"]
    return f"  {request['method']} {request['path']} {media} {body} -> {status}"[:700]
