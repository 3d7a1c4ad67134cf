"""What ``claimctl explain`` says of objects that are not there, and of what leads to a claim."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.session import Session
from claimctl.commands.claims.explain_work import run
from claimctl.commands.claims.missing import naming
from tests.support.claim_server import NAMESPACE, Server


async def asked(server: Server, kind: str, name: str) -> None:
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    async with naming(server.client, kind, NAMESPACE, name):
        await run(session, NAMESPACE, kind, name, Output.TABLE)


@pytest.mark.parametrize(
    ("claims", "line"),
    [
        ((), "claim ml/slic not found; there is no claim in the namespace"),
        (("slice", "other"), "claim ml/slic not found; there are: other, slice"),
        (tuple("abcdefg"), "claim ml/slic not found; there are: a, b, c, d, e and 2 more"),
    ],
)
async def test_a_mistyped_claim_is_told_which_there_are(claims: tuple[str, ...], line: str) -> None:
    server = Server.started()
    for name in claims:
        server.claim(name)
    with pytest.raises(CommandFailed) as caught:
        await asked(server, "ResourceClaim", "slic")
    assert str(caught.value) == line


async def test_who_may_not_list_claims_is_told_only_that_it_is_not_there() -> None:
    server = Server.started()

    def hook(point: FaultPoint) -> Fault | None:
        return Fault(status=403, reason="Forbidden") if point.verb == "list" else None

    server.handler.fault = hook
    with pytest.raises(CommandFailed) as caught:
        await asked(server, "ResourceClaim", "slic")
    assert str(caught.value) == "claim ml/slic not found"


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ClaimReservation"])
async def test_another_object_that_is_not_there(kind: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        await asked(Server.started(), kind, "nope")
    assert str(caught.value) == f"{kind} ml/nope not found"


async def test_an_unknown_kind_is_told_which_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"'foo': claimctl knows no such kind; there are: "
    ) as caught:
        await asked(Server.started(), "foo", "x")
    kinds = str(caught.value).split(": ")[-1].split(", ")
    assert {"claim", "claimreservation", "pod", "deployment", "jobset"} <= set(kinds)


async def test_a_reservation_leads_to_its_claim(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.reservation("by-hand")
    await asked(server, "ClaimReservation", "by-hand")
    assert capsys.readouterr().out.startswith("Claim:      ml/slice\n")


async def test_a_reservation_whose_claim_is_missing_says_which_there_are() -> None:
    server = Server.started()
    server.claim("slice")
    server.reservation("wrong", claim="nosuch")
    with pytest.raises(CommandFailed) as caught:
        await asked(server, "ClaimReservation", "wrong")
    assert str(caught.value) == (
        "ClaimReservation wrong: claim ml/nosuch not found; there are: slice; create nosuch, or "
        "see who asks for it: kubectl -n ml describe claimreservation wrong"
    )
