"""``uninstall prepare``: flags that do not go together, exit codes, and what is printed."""

from __future__ import annotations

import asyncio

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli import main
from claimctl.cli.session import Session
from claimctl.commands.uninstall.model import Leftover, Removed
from claimctl.commands.uninstall.run import UninstallResult, UninstallWanted
from claimctl.commands.uninstall.work import carry_out, conclusion, document, exit_code, table
from claimctl.controller.settings import Settings
from tests.support.claim_server import NAMESPACE, Server
from tests.support.printed import as_json

LEFT = Leftover("ClaimReservation", "ml", "train", "HistoryUnknown", "waits", 250.0)
STUCK = Leftover("PodGroup", "ml", "train", "Guarded", "pods use it")
WANTED = UninstallWanted(Settings(identity="me"), ("ml",))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--stop-controller -n ml", "--stop-controller: not with --dry-run or --namespace"),
        ("--timing fast", "'fast' is not one of 'normal', 'slow'"),
        ("-n Team", "'Team' is not a DNS label"),
        ("--lease-namespace Team", "'Team' is not a DNS label"),
        ("--timeout 0", "'0' is too short: 1s or more is expected"),
        ("--timeout soon", "'--timeout': 'soon' is not a duration"),
        ("--settle-seconds nan", "is not a duration like"),
        ("--force-deleted-pod-grace-seconds -1", "is not a duration like"),
        ("-o xml", "'xml' is not one of"),
        ("everything", "unexpected extra argument(s) (everything)"),
    ],
)
def test_bad_input_is_one_line_that_names_the_flag(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["uninstall", "prepare", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("write", [True, False])
async def test_ctrl_c_says_that_what_is_done_stays(
    write: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server.started(NAMESPACE)
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    asked = asyncio.Event()

    def hang(point: FaultPoint) -> Fault:
        asked.set()
        return Fault(hang=True)

    server.handler.fault = hang
    task = asyncio.create_task(carry_out(session, WANTED, write=write))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stays = "; what is done stays, and another run continues" if write else ""
    assert capsys.readouterr().err == f"interrupted{stays}\n"


def test_the_exit_code_says_whether_anything_is_left() -> None:
    assert exit_code(UninstallResult(())) == 0
    assert exit_code(UninstallResult((STUCK,))) == 3


def test_the_table_has_a_line_for_each_object() -> None:
    made = table(UninstallResult((LEFT, STUCK)), "Left")
    assert made.rows == (
        ("ml", "ClaimReservation", "train", "Left", "HistoryUnknown", "4m10s", "waits"),
        ("ml", "PodGroup", "train", "Left", "Guarded", "", "pods use it"),
    )


def test_the_document_has_what_was_removed_and_what_is_left() -> None:
    removed = [Removed("Deployment", "ml", "train", "annotation claimctl.io/reserve=*")]
    shown = as_json(document(UninstallResult((LEFT,), ("stays",), removed), WANTED, dry_run=False))
    assert (shown["kind"], shown["clean"], shown["namespaces"]) == (
        "UninstallReport",
        False,
        ["ml"],
    )
    assert shown["removed"][0]["what"] == "annotation claimctl.io/reserve=*"
    assert shown["left"][0]["afterSeconds"] == 250.0
    assert shown["notes"] == ["stays"]
    assert document(UninstallResult(()), WANTED, dry_run=True).clean is True


@pytest.mark.parametrize(
    ("left", "verify", "dry_run", "told"),
    [
        ((), False, False, "claimctl can be deleted"),
        ((STUCK,), True, False, "run `claimctl uninstall prepare`"),
        ((STUCK,), False, True, "1 object would be changed or deleted; nothing was written"),
        ((STUCK,), False, False, "do what MESSAGE says, and run again"),
    ],
)
def test_the_last_line_says_what_comes_next(
    left: tuple[Leftover, ...], verify: bool, dry_run: bool, told: str
) -> None:
    assert told in conclusion(UninstallResult(left), (), verify=verify, dry_run=dry_run)


def test_a_part_of_the_cluster_is_not_the_cluster() -> None:
    told = conclusion(UninstallResult(()), ("ml", "web"), verify=True, dry_run=False)
    assert told == "nothing of claimctl is left in ml, web"
