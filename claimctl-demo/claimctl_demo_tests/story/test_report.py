"""What the demonstration prints, and how it ends."""

from __future__ import annotations

import io

import pytest

from claimctl.cli.color import VARIABLE as COLOR_VARIABLE
from claimctl.cli.progress import progress
from claimctl_demo.commands.demo import exit_code
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Figures, Printer, Report, Step
from claimctl_witness.witness import Violation
from tests.support.printed import as_json

KEP = Part("native", "1.36")
GOOD = Step("shared-claim", True, 1.234, Figures(600, 1, 2), "all is well", KEP)
BAD = Step("job-ended", False, 20.0, Figures(), "not within 20 s: all pods run", KEP)
FOUND = Violation("DeallocatedInUse", 7, "ml", "slice", ("a",), "revision 7: claim ml/slice ...")


def report(*steps: Step, violations: list[Violation] | None = None) -> Report:
    return Report((KEP,), list(steps), violations or [], seconds=3.0)


def printed(told: Report) -> str:
    out = io.StringIO()
    printer = Printer(out)
    for step in told.steps:
        printer.step(step)
    printer.end(told)
    return out.getvalue()


def test_a_good_run_exits_0_a_failed_step_1_and_a_violation_3() -> None:
    told = [report(GOOD), report(GOOD, BAD), report(GOOD, BAD, violations=[FOUND])]
    assert [exit_code(each) for each in told] == [0, 1, 3]


def test_trouble_inside_the_embedded_cluster_is_a_failure() -> None:
    told = report(GOOD)
    told.errors.append("KeyError: x")
    assert (exit_code(told), told.document().errors) == (1, ("KeyError: x",))


def test_each_step_is_one_plain_line_with_its_figures() -> None:
    assert printed(report(GOOD, BAD, violations=[FOUND])) == (
        "ok     1.2s  shared-claim: all is well [pods 600, references 1, writes by claimctl 2]\n"
        "FAIL  20.0s  job-ended: not within 20 s: all pods run\n"
        "VIOLATION DeallocatedInUse: revision 7: claim ml/slice ...\n"
        "1 of 2 steps as they should be, 1 violations in the server's history, 3.0s\n"
    )


def test_a_live_line_of_a_terminal_is_removed_before_a_step_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", COLOR_VARIABLE: "always"}.items():
        monkeypatch.setenv(name, value)
    with progress("playing", live=True, prints=True):
        Printer().step(GOOD)
    out, err = capsys.readouterr()
    assert out == ""
    before, _, _ = err.partition("ok     1.2s")
    assert before.rpartition("playing")[2].endswith("\r\x1b[2K\x1b[32m")


def test_the_document_has_the_measured_figures() -> None:
    document = as_json(report(GOOD, violations=[FOUND]).document())
    assert document == {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "DemoReport",
        "dialect": "native",
        "version": "1.36",
        "playedOn": "an embedded cluster",
        "ok": False,
        "seconds": 3.0,
        "steps": [
            {
                "name": "shared-claim",
                "ok": True,
                "dialect": "native",
                "version": "1.36",
                "pods": 600,
                "references": 1,
                "writes": 2,
                "seconds": 1.23,
                "message": "all is well",
            }
        ],
        "violations": 1,
        "errors": [],
        "violationDetails": [
            {
                "rule": "DeallocatedInUse",
                "revision": 7,
                "namespace": "ml",
                "claim": "slice",
                "pods": ["a"],
                "message": "revision 7: claim ml/slice ...",
            }
        ],
    }
