"""``claimctl get``: which claims it shows."""

from __future__ import annotations

import pytest

from claimctl.cli.get import Wanted, gather
from tests.support.claim_server import NAMESPACE, Server


async def test_get_shows_the_rest_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    for plural in ("resourceclaims", "pods"):
        made = Server.with_unreadable(plural, "bad")
        for name in ("bad", "slice"):
            made.claim(name)
            made.pod(name, claim=name)
        shown = await gather(made.client, Wanted(NAMESPACE))
        names = ["slice"] if plural == "resourceclaims" else ["bad", "slice"]
        assert [view.name for view in shown] == names
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("warning: ")
        assert "ml/bad cannot be read: Expected `int`" in line
