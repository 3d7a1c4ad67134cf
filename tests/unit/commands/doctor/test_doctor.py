"""``claimctl doctor``: where it looks, and its last line."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.output import print_table
from claimctl.cli.session import Session
from claimctl.commands.doctor.doctor_work import place_of, run, summarize, table
from claimctl.commands.doctor.model import CheckVerdict, Finding
from tests.support.claim_server import NAMESPACE, Server
from tests.support.terminal import Terminal


def test_without_all_checks_it_does_not_say_that_nothing_is_wrong() -> None:
    assert summarize(0, 0) == "no problems"
    assert summarize(2, 0) == "2 problems"
    assert summarize(0, 15) == (
        "no problem in what could be checked; 15 checks not possible with your rights"
    )


def test_what_waits_is_counted_beside_no_problems() -> None:
    assert summarize(0, 0, 1) == "no problems; 1 line says what waits"
    assert summarize(2, 1, 2) == (
        "2 problems; 2 lines say what waits; 1 check not possible with your rights"
    )


async def test_who_may_look_into_one_namespace_only_gets_that_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    assert await place_of(session, None) == ""
    assert await place_of(session, NAMESPACE) == NAMESPACE
    with pytest.raises(CommandFailed, match="there is no namespace other"):
        await place_of(session, "other")

    def hook(point: FaultPoint) -> Fault | None:
        everywhere = point.verb == "list" and not point.namespace
        return Fault(status=403, reason="Forbidden") if everywhere else None

    server.handler.fault = hook
    assert await place_of(session, None) == NAMESPACE
    assert capsys.readouterr().err == (
        "you may not list claims in all namespaces: namespace ml is checked\n"
    )
    await run(session, "auto", NAMESPACE, Output.TABLE)
    assert "claims, none is an orphan" in capsys.readouterr().out
    assert await place_of(session, "") == "", "all namespaces were asked for"


def test_a_narrow_terminal_still_names_each_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    long = Finding("reservations", "not ready", "ml", "a-long-name-of-a-reservation")
    shown = table((long, Finding("kubernetes", "1.36", verdict=CheckVerdict.OK)))
    wide, narrow = Terminal(), Terminal()
    print_table(shown, out=wide, width=120)
    print_table(shown, out=narrow, width=40)
    assert wide.getvalue().split()[:4] == ["RESULT", "CHECK", "OBJECT", "WHAT"]
    assert "OBJECT" not in narrow.getvalue()
    assert "ml/a-long-name-of-a-reservation:" in narrow.getvalue()
    assert " -: " not in narrow.getvalue()
    assert capsys.readouterr().err == "left out for lack of room: CHECK\n"
