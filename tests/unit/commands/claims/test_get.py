"""``claimctl get``: which claims it shows."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from claimctl.cli.formats import Output
from claimctl.cli.main import run as run_line
from claimctl.cli.options import claim_name
from claimctl.commands.claims.get import SORTABLE
from claimctl.commands.claims.get_work import ClaimsWanted, gather, in_order, run
from tests.support.claim_server import NAMESPACE, TRAIN, Server
from tests.support.printed import checked
from tests.support.waiting import asks, has_devices, publish, unschedulable


async def test_get_shows_the_rest_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    for plural in ("resourceclaims", "pods"):
        made = Server.with_unreadable(plural, "bad")
        for name in ("bad", "slice"):
            made.claim(name)
            made.pod(name, claim=name)
        shown = await gather(made.client, made.clock.now(), ClaimsWanted(NAMESPACE))
        names = ["slice"] if plural == "resourceclaims" else ["bad", "slice"]
        assert [view.name for view in shown] == names
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("warning: ")
        assert "ml/bad cannot be read: Expected `int`" in line


async def test_a_missing_name_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    made = Server.started()
    made.claim("slice")
    wanted = ClaimsWanted(NAMESPACE, ("nope", "slice", "no-more"))
    assert await run(made.client, made.clock.now(), wanted, Output.TABLE) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("slice ")
    assert err == "error: claim ml/nope not found\nerror: claim ml/no-more not found\n"


async def test_what_get_prints_as_a_name_is_taken_as_a_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Server.started()
    made.claim("slice")
    await run(made.client, made.clock.now(), ClaimsWanted(NAMESPACE), Output.NAME)
    assert claim_name(capsys.readouterr().out.strip()) == "slice"


@pytest.mark.parametrize(
    ("namespace", "line"),
    [
        (NAMESPACE, "No claims found in namespace ml.\n"),
        ("nosuch", "No claims found: there is no namespace nosuch.\n"),
        ("", "No claims found.\n"),
    ],
)
async def test_an_empty_answer_says_where_it_looked(
    namespace: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Server.started()
    assert await run(made.client, made.clock.now(), ClaimsWanted(namespace), Output.TABLE) == 0
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize("column", SORTABLE)
async def test_every_column_sorts(column: str) -> None:
    """The younger claim comes first by age, and a claim without devices last."""
    made = Server.started()
    asks(made, "a-pending")
    await made.clock.sleep(5)
    has_devices(made, "slice", TRAIN)
    shown = in_order(await gather(made.client, made.clock.now(), ClaimsWanted(NAMESPACE)), column)
    last = "a-pending" if column in {"age", "state", "devices", "holders"} else "slice"
    assert [view.name for view in shown][-1] == last, column


def test_a_column_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_line(["get", "--server", "http://127.0.0.1:1", "--sort-by", "nosuch"]) == 2
    assert "'nosuch' is not one of name, state, devices" in capsys.readouterr().err


async def test_idle_devices_have_their_times_and_who_waits_for_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Server.started()
    train = made.deployment(replicas=0)
    has_devices(made, "slice", train)
    publish(made, "slice", "used")
    since = made.clock.now() - timedelta(seconds=30)
    status = made.held_status(train) | {"idleSince": f"{since:%Y-%m-%dT%H:%M:%SZ}"}
    made.reservation(status=status, idleTimeoutSeconds=90)
    has_devices(made, "used", made.pod("a", claim="used"))
    asks(made, "asked")
    names = [f"late-{number}" for number in range(5)]
    for name in names:
        made.pod(name, claim="asked", node="")
        unschedulable(made, name)
    wanted = ClaimsWanted(NAMESPACE, idle=True)
    now = made.clock.now()
    end = f"{since.replace(microsecond=0) + timedelta(seconds=90):%Y-%m-%dT%H:%M:%SZ}"
    assert await run(made.client, now, wanted, Output.TABLE) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[-3:] == ["IDLE", "UNTIL", "WAITING"]
    assert row.split()[0] == "slice"
    assert row.endswith(f"  {end}   ml/late-0, ml/late-1, ml/late-2 and 2 more")
    assert await run(made.client, now, wanted, Output.JSON) == 0
    (item,) = checked(json.loads(capsys.readouterr().out))["items"]
    assert item["idle"]["until"] == end
    assert item["idle"]["waitingPods"] == [f"ml/{name}" for name in names]


async def test_without_idle_devices_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    made = Server.started()
    made.claim("used")
    made.pod("a", claim="used")
    await run(made.client, made.clock.now(), ClaimsWanted(NAMESPACE, idle=True), Output.TABLE)
    assert "No devices are held without a pod." in capsys.readouterr().err


async def test_a_kind_is_no_name_of_a_claim(capsys: pytest.CaptureFixture[str]) -> None:
    made = Server.started()
    wanted = ClaimsWanted(NAMESPACE, ("pods",))
    assert await run(made.client, made.clock.now(), wanted, Output.TABLE) == 1
    assert "`claimctl get` takes names of claims, and no kind" in capsys.readouterr().err
