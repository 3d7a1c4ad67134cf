"""The page of the demonstration says what the report says."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from claimctl_demo.story.page import page
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Figures, Report, Step
from claimctl_witness.witness import Violation
from tests.support.builders import after
from tests.unit.commands.timeline.stories import life, timeline

TODAY = Part("hold", "1.36")
STEPS = [
    Step("shared-claim", True, 1.5, Figures(40, 41, 1), "shares node-0/gpu-0", TODAY, after(0)),
    Step("job-ended", False, 2.0, Figures(), "not within 20 s: <it>", TODAY, after(50)),
]


def report() -> Report:
    return Report(
        (TODAY,),
        steps=STEPS,
        seconds=3.5,
        timelines={TODAY: [timeline(life(pods=8))]},
    )


def test_steps_devices_and_claims() -> None:
    found = page(report())
    assert "1 of 2 steps as they should be, 0 violations" in found
    assert "<b>shared-claim</b> (ok, 1.5 s): shares node-0/gpu-0" in found
    assert '<b>job-ended</b> (<span class="bad">FAILED</span>, 2.0 s)' in found
    assert "&lt;it&gt;" in found
    assert "<h3>A: claim train/slice</h3>" in found
    assert "12:00:02 node-0/gpu-0 allocated by kube-scheduler." in found
    assert "http" not in found


def test_violations_and_errors_come_first() -> None:
    bad = report()
    bad.violations.append(Violation("DeallocatedInUse", 7, "ml", "slice", ("p",), "under p"))
    bad.errors.append("etcd has ended")
    found = page(bad)
    assert found.index("DeallocatedInUse: under p") < found.index("Kubernetes 1.36")
    assert "Error in the cluster: etcd has ended" in found


def test_the_claim_that_was_made_first_is_shown_first() -> None:
    first, second = timeline(life()), timeline(life(pods=2))
    later = replace(first, claim="alone", begin=first.begin + timedelta(seconds=9))
    shown = report()
    shown.timelines = {TODAY: [later, second]}
    found = page(shown)
    assert found.index("A: claim train/slice") < found.index("B: claim train/alone")


def test_a_chart_ends_soon_after_the_last_change_of_its_claim() -> None:
    found = page(report())
    assert "12:01:01 UTC (61s)" in found
