"""Replays recordings of real servers on kube-in-process: a line for each, and the total."""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.real.flags import Parser
from kube_in_process.virtual import run

from judges.conformance.replay import recordings
from judges.conformance.report import ReplayReport, report
from judges.conformance.stages import play
from judges.processes import quiet


def _details(replay: ReplayReport) -> None:
    for result, difference in replay.new:
        print(f"  [{result.index}] {result.note[:70]}\n      {difference}")
    for entry in replay.stale:
        print(f"  listed but not seen: {entry}")


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges conformance", __doc__)
    parser.add_argument("-v", "--verbose", action="store_true", help="each difference in full")
    parser.add_argument("names", nargs="*", metavar="NAME", help="recordings that begin with it")
    options = parser.parse_args(arguments)
    quiet()
    reports = []
    for recording in recordings():
        if options.names and not recording.name.startswith(tuple(options.names)):
            continue
        reports.append(report(recording.name, run(play(recording))))
        print(reports[-1].line())
        if options.verbose:
            _details(reports[-1])
    steps = sum(replay.steps for replay in reports)
    different = sum(replay.different for replay in reports)
    allowed = sum(replay.allowed for replay in reports)
    matched = sum(replay.matched for replay in reports)
    print(
        f"total: {matched} of {steps} steps matched, {allowed} allowed "
        f"({allowed / max(steps, 1):.1%}), {different} different"
    )
    return 1 if different else 0
