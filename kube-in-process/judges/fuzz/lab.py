"""Sends random requests to kube-in-process, counts, and shows what went wrong.

Requests are made until N were sent, or until S seconds are over; every failure is shown once, with
the shortest sequence of requests that led to it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from kube_in_process.real.flags import Parser, number
from kube_in_process.virtual import run

from judges.fuzz.requests import FuzzRequest, sequences
from judges.fuzz.server import FuzzTally, asked, furnished

_BATCH = 500


@dataclass
class FuzzFindings:
    """Failures by where they came from, each with the shortest requests and the traceback."""

    failures: dict[str, tuple[list[FuzzRequest], str]] = field(default_factory=dict)

    def note(self, error: BaseException, requests: list[FuzzRequest]) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/kube_in_process/" in frame.filename] or frames
        last = ours[-1]
        key = f"{type(error).__name__} at {last.filename}:{last.lineno}"
        if key not in self.failures or len(requests) < len(self.failures[key][0]):
            text = "".join(traceback.format_exception(error, limit=-12))
            self.failures[key] = (requests, text)

    def show(self) -> None:
        for key, (requests, text) in self.failures.items():
            print(ascii_only(f"\n{key}\n{text}"))
            for request in requests:
                print(ascii_only(f"  {request}")[:2000])


def ascii_only(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _batch(number: int, tally: FuzzTally, findings: FuzzFindings) -> None:
    @seed(number)
    @settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(sequences())
    def play(requests: list[FuzzRequest]) -> None:
        try:
            run(asked(furnished(), requests, tally), limit=40_000)
        except Exception as error:
            findings.note(error, requests)

    play()


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges fuzz", __doc__)
    parser.add_argument("--requests", type=number(1), default=20_000, help="%(default)s by default")
    parser.add_argument("--seconds", type=number(1, kind=float), default=600.0, help="at most")
    parser.add_argument("--seed", type=number(), default=0)
    wanted = parser.parse_args(arguments)
    tally, findings, begun = FuzzTally(), FuzzFindings(), time.monotonic()
    furnished()  # parsing CEL raises the limit of recursion, which hypothesis must not see
    batch = wanted.seed * 1_000_000
    while tally.requests < wanted.requests and time.monotonic() - begun < wanted.seconds:
        _batch(batch, tally, findings)
        batch += 1
    findings.show()
    print(f"requests {tally.requests}, watches {tally.watches}, failures {len(findings.failures)}")
    print("methods", dict(sorted(tally.methods.items())))
    print("answers", dict(sorted(tally.statuses.items())))
    return 1 if findings.failures or tally.requests < wanted.requests else 0
