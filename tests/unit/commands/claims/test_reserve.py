"""``claimctl reserve``: what it writes, and what it refuses."""

from __future__ import annotations

import pytest

from claimctl.cli import main
from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.session import Session
from claimctl.commands.claims.reserve_work import Wanted, annotate, lines
from claimctl.wire.reservations import RESERVE_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server
from tests.support.printed import as_json

TRAIN = Wanted("Deployment", "train")


def session(server: Server) -> Session:
    return Session(server.client, server.clock, NAMESPACE, server.handler)


def written(server: Server) -> dict[str, str]:
    meta = server.admin.get("deployments", NAMESPACE, "train")["metadata"]
    found: dict[str, str] = meta.get("annotations") or {}
    return found


async def test_every_claim_of_the_template_is_reserved_once() -> None:
    server = Server.started()
    server.deployment(annotations={"note": "ours"})
    done = await annotate(session(server), TRAIN)
    assert done.claims == ("slice",)
    assert written(server) == {"note": "ours", RESERVE_ANNOTATION: "*"}
    before = server.handler.api.store.revision
    again = await annotate(session(server), TRAIN)
    assert (again, server.handler.api.store.revision) == (done, before)
    assert lines(done)[1:] == [
        f"To see it: claimctl explain deployment/train -n {NAMESPACE}",
        f"To end it: kubectl -n {NAMESPACE} annotate deployment/train {RESERVE_ANNOTATION}-",
    ]


async def test_the_flags_become_annotations() -> None:
    server = Server.started()
    server.deployment()
    wanted = Wanted("Deployment", "train", ("slice",), "Persistent", 3600)
    done = await annotate(session(server), wanted)
    assert written(server) == as_json(done)["annotations"]
    assert written(server) == {
        RESERVE_ANNOTATION: "slice",
        "claimctl.io/retention-policy": "Persistent",
        "claimctl.io/idle-timeout-seconds": "3600",
    }


async def test_a_dry_run_says_what_would_be_written_and_writes_nothing() -> None:
    server = Server.started()
    server.deployment()
    done = await annotate(session(server), Wanted("Deployment", "train", dry_run=True))
    assert lines(done)[1] == f"it would be annotated: {RESERVE_ANNOTATION}=*"
    assert written(server) == {}


async def test_a_claim_that_the_template_does_not_name_is_refused() -> None:
    server = Server.started()
    server.deployment()
    with pytest.raises(UsageError, match="names claim other, but the pod template does not"):
        await annotate(session(server), Wanted("Deployment", "train", ("other",)))
    assert written(server) == {}


async def test_a_workload_that_is_not_there_is_named() -> None:
    server = Server.started()
    with pytest.raises(CommandFailed, match=f"Deployment {NAMESPACE}/train not found"):
        await annotate(session(server), TRAIN)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train", "'train': put the kind before the name, as in deploy/train"),
        ("pod/train", "the kind before '/' must be one of"),
        ("deploy/train --retention-policy Manual", "'Manual' is not one of"),
        ("deploy/train --idle-timeout long", "'long' is not a duration like"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["reserve", *arguments.split()]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert words in captured.err
