"""``python -m tests.conformance [-v] [NAME...]``: one line per recording, and the total.

``--write-known`` replaces the list of known differences by what is found now.
"""

from __future__ import annotations

import sys

from tests.conformance.replay import recordings
from tests.conformance.report import KNOWN, Entry, Report, report, write_known
from tests.conformance.stages import play
from tests.support.virtual import run


def _details(each: Report) -> None:
    for result, difference in each.new:
        print(f"  [{result.index}] {result.note[:70]}\n      {difference}")
    for entry in each.stale:
        print(f"  listed but not seen: {entry}")


def _rewrite_known() -> int:
    KNOWN.write_text("[]\n")
    reports = [report(each.name, run(play(each))) for each in recordings()]
    write_known(
        [
            Entry(each.name, result.index, difference.field)
            for each in reports
            for result, difference in each.new
        ]
    )
    return 0


def main(arguments: list[str]) -> int:
    if "--write-known" in arguments:
        return _rewrite_known()
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
    known = sum(each.known for each in reports)
    matched = sum(each.matched for each in reports)
    print(f"total: {matched} of {steps} steps matched, {allowed} allowed, {known} known", end="")
    print(f", {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
