"""``python -m labs conformance [-v] [NAME...]``: one line per recording, and the total."""

from __future__ import annotations

import logging
import sys

import structlog
from kube_in_process.virtual import run

from labs.conformance.replay import recordings
from labs.conformance.report import Report, report
from labs.conformance.stages import play


def _details(each: Report) -> None:
    for result, difference in each.new:
        print(f"  [{result.index}] {result.note[:70]}\n      {difference}")
    for entry in each.stale:
        print(f"  listed but not seen: {entry}")


def main(arguments: list[str]) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    verbose = "-v" in arguments
    names = [argument for argument in arguments if not argument.startswith("-")]
    reports = []
    for recording in recordings():
        if names and not any(recording.name.startswith(name) for name in names):
            continue
        each = report(recording.name, run(play(recording)))
        reports.append(each)
        print(each.line())
        if verbose:
            _details(each)
    steps = sum(each.steps for each in reports)
    different = sum(each.different for each in reports)
    allowed = sum(each.allowed for each in reports)
    matched = sum(each.matched for each in reports)
    print(
        f"total: {matched} of {steps} steps matched, {allowed} allowed "
        f"({allowed / max(steps, 1):.1%}), {different} different"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
