"""Replays transcripts on kube-in-process.

FILE was written by ``--keep``; no real server is needed. With TEXT, only kinds of difference that
contain it are shown, with their requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from kube_in_process.real.flags import Parser

from judges.differential.ledger import allowances, allowed
from judges.differential.outcome import PartOutcome
from judges.differential.playing import Side, play
from judges.differential.requests import judged

_CHUNK = 40


def side_of(server: str) -> Side:
    major, minor = server.removeprefix("v").split(".")[:2]
    version = (int(major), int(minor))
    return Side(version, version >= (1, 36))


def _outcome(lines: list[str]) -> PartOutcome:
    rules = allowances()
    outcome = PartOutcome("requests", "requests")
    for line in lines:
        kept: dict[str, Any] = json.loads(line)
        server = side_of(kept["server"]).server()
        played = play(server, kept["name"], kept["steps"], kept["managedFields"])
        for finding in judged(played, outcome, lambda kind: allowed(kind, rules)):
            outcome.note(finding)
    return outcome


def _chunks(lines: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(lines), _CHUNK):
        yield lines[start : start + _CHUNK]


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges differential-again", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("text", nargs="?", default="", metavar="TEXT")
    options = parser.parse_args(arguments)
    text, lines = options.text, options.file.read_text().splitlines()
    total = PartOutcome("requests", "requests")
    with ProcessPoolExecutor(2) as pool:
        for outcome in pool.map(_outcome, _chunks(lines)):
            total.compared += outcome.compared
            total.kinds.update(outcome.kinds)
            total.findings = {**outcome.findings, **total.findings}
    rules = allowances()
    new = [(kind, n) for kind, n in total.kinds.most_common() if not allowed(kind, rules)]
    for kind, count in new:
        if text in kind:
            print(f"=== {count} x {kind}")
            if text:
                print(total.findings[kind].shown)
    print(f"{total.compared} requests, {len(new)} kinds, {sum(n for _, n in new)} in all")
    return 1 if new else 0
