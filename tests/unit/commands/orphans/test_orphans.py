"""``orphans``: flags that do not go together, exit codes, and what is printed."""

from __future__ import annotations

import pytest
from msgspec import convert
from msgspec.structs import replace

from claimctl.cli import main
from claimctl.commands.orphans import work
from claimctl.commands.orphans.model import Cause, Orphan
from claimctl.commands.orphans.reclaim import Candidate, Outcome
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.claims import AllocationResult
from tests.support.builders import claim, pod_ref
from tests.support.printed import as_json


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("doctor orphans slice", "unexpected extra argument(s) (slice)"),
        (
            "doctor orphans -A -n ml",
            "--all-namespaces (-A) and --namespace (-n) exclude each other",
        ),
        ("doctor orphans -o tables", "'tables' is not one of"),
        ("doctor orphans --settle-seconds nan", "is not a duration like"),
        ("doctor orphans --settle-seconds -1", "is not a duration like"),
        ("doctor orphans --slow-binding-seconds -1", "is not a duration like"),
        (
            "doctor orphans --force-deleted-pod-grace-seconds -1",
            "is not a duration like",
        ),
        (
            "doctor orphans --force-deleted-pod-grace-seconds soon",
            "'--force-deleted-pod-grace-seconds': 'soon' is not a duration",
        ),
        ("doctor orphans -n Team", "'Team' is not a DNS label"),
        ("release", "Missing argument 'CLAIM'"),
        ("release Slice", "'Slice' is not a DNS name"),
        ("release slice --yes", "No such option: --yes"),
    ],
)
def test_bad_input_is_one_line_that_names_the_flag(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments.split()) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


DEVICE = "node-0/gpu-1"


def candidate(outcome: Outcome, *blockers: Blocker, note: str = "") -> Candidate:
    orphan = Orphan(Cause.DEAD_PODS, "reserved for pods that are gone", blockers)
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-0", "device": "gpu-1"}
    allocated = convert({"devices": {"results": [result]}}, AllocationResult)
    orphaned = claim(pod_ref("a"))
    status = replace(orphaned.status, allocation=allocated)
    return Candidate(replace(orphaned, status=status), orphan, outcome=outcome, note=note)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), 0),
        ((Outcome.FREED, Outcome.NOT_ORPHAN), 0),
        ((Outcome.WOULD_FREE,), 3),
        ((Outcome.FREED, Outcome.LEFT), 3),
        ((Outcome.FREED, Outcome.LEFT, Outcome.FAILED), 1),
    ],
)
def test_the_exit_code_tells_what_is_left(outcomes: tuple[Outcome, ...], code: int) -> None:
    assert work.exit_code([candidate(each) for each in outcomes]) == code


def test_a_row_says_why_and_what_stands_against_it() -> None:
    held = Blocker(Reason.OTHER_HOLDERS, "held by objects that exist: jobs.batch/x")
    shown = work.table(
        [candidate(Outcome.LEFT, held), candidate(Outcome.FAILED, note="PATCH /x: 403")], "train"
    )
    assert [row[:6] for row in shown.rows] == [
        (
            "train", "slice", "DeadPods", DEVICE, "Left",
            "reserved for pods that are gone; "
            "OtherHolders: held by objects that exist: jobs.batch/x",
        ),
        ("train", "slice", "DeadPods", DEVICE, "Failed", "PATCH /x: 403"),
    ]  # fmt: skip
    assert shown.names == ()
    assert shown.empty == "No orphans found in namespace train."
    assert work.table([], "").empty == "No orphans found."


def test_names_are_of_what_was_freed_or_would_be() -> None:
    found = [candidate(Outcome.FREED), candidate(Outcome.WOULD_FREE), candidate(Outcome.NOT_ORPHAN)]
    assert work.table(found, "").names == ("resourceclaim.resource.k8s.io/slice",) * 2


def test_the_document_is_whole() -> None:
    held = Blocker(Reason.OTHER_HOLDERS, "held")
    assert as_json(work.document([candidate(Outcome.LEFT, held)], dry_run=True)) == {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "OrphanList",
        "dryRun": True,
        "items": [
            {
                "namespace": "train",
                "name": "slice",
                "uid": "uid-slice",
                "reason": "DeadPods",
                "message": "reserved for pods that are gone",
                "devices": [DEVICE],
                "reservedFor": [{"resource": "pods", "name": "a", "uid": "uid-a"}],
                "outcome": "Left",
                "blockers": [{"reason": "OtherHolders", "message": "held"}],
                "error": "",
            }
        ],
    }
