"""``python -m labs fuzz [--requests N] [--seconds S] [--seed N]``: counts, and what went wrong.

Requests are made until N were sent, or until S seconds are over; every failure is shown once, with
the shortest sequence of requests that led to it.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from kube_in_process.virtual import run

from labs.fuzz.requests import Request, sequences
from labs.fuzz.server import Tally, asked, furnished

_BATCH = 500


@dataclass
class Findings:
    """Failures by where they came from, each with the shortest requests and the traceback."""

    found: dict[str, tuple[list[Request], str]] = field(default_factory=dict)

    def note(self, error: BaseException, requests: list[Request]) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/embedded/" in frame.filename] or frames
        last = ours[-1]
        key = f"{type(error).__name__} at {last.filename}:{last.lineno}"
        if key not in self.found or len(requests) < len(self.found[key][0]):
            told = "".join(traceback.format_exception(error, limit=-12))
            self.found[key] = (requests, told)

    def show(self) -> None:
        for key, (requests, told) in self.found.items():
            print(ascii_only(f"\n{key}\n{told}"))
            for request in requests:
                print(ascii_only(f"  {request}")[:2000])


def ascii_only(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _batch(number: int, tally: Tally, findings: Findings) -> None:
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
    def one(requests: list[Request]) -> None:
        try:
            run(asked(furnished(), requests, tally), limit=40_000)
        except Exception as error:
            findings.note(error, requests)

    one()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs fuzz")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args(arguments)
    tally, findings, begun = Tally(), Findings(), time.monotonic()
    furnished()  # parsing CEL raises the limit of recursion, which hypothesis must not see
    batch = wanted.seed * 1_000_000
    while tally.requests < wanted.requests and time.monotonic() - begun < wanted.seconds:
        _batch(batch, tally, findings)
        batch += 1
    findings.show()
    print(f"requests {tally.requests}, watches {tally.watches}, failures {len(findings.found)}")
    print("methods", dict(sorted(tally.methods.items())))
    print("answers", dict(sorted(tally.statuses.items())))
    return 1 if findings.found or tally.requests < wanted.requests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
