"""``claimctl doctor``: where it looks, and its last line."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli.formats import Output
from claimctl.cli.session import Session
from claimctl.commands.doctor.doctor_work import place_of, run, summarize
from tests.support.claim_server import NAMESPACE, Server


def test_without_all_checks_it_does_not_say_that_nothing_is_wrong() -> None:
    assert summarize(0, 0) == "no problems"
    assert summarize(2, 0) == "2 problems"
    assert summarize(0, 15) == (
        "no problem in what could be checked; 15 checks not possible with your rights"
    )


async def test_who_may_look_into_one_namespace_only_gets_that_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    assert await place_of(session, None) == ""
    assert await place_of(session, "other") == "other"

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
