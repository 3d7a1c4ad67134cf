"""``claimctl reserve``: what it writes, and what it refuses."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.cli import main
from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.session import Session
from claimctl.commands.claims.reserve_work import Wanted, annotate, lines, reserve
from claimctl.wire.reservations import RESERVE_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected
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


LOOK_AND_UNDO = [
    f"To see it: claimctl explain deployment/train -n {NAMESPACE}",
    f"To end it: kubectl -n {NAMESPACE} annotate deployment/train {RESERVE_ANNOTATION}-",
]
ANNOTATED = f"deployment/train in {NAMESPACE} is annotated, to reserve claim slice"
RESERVED = f"claim slice reserved for deployment/train in {NAMESPACE}"


async def told(
    capsys: pytest.CaptureFixture[str], server: Server, limit: float | None = None
) -> tuple[int, list[str]]:
    """The exit code, and the lines on stdout."""
    server.deployment()
    code = await reserve(session(server), TRAIN, Output.TABLE, limit)
    return code, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("renewed_before", "reservation", "code", "words"),
    [
        (0.0, False, 0, ""),
        (60.0, True, 3, "Nothing is reserved yet: no controller acts: the Lease "),
        (
            None,
            False,
            3,
            "Nothing is reserved yet: no controller has reserved it for 5 s (no Lease ",
        ),
        (None, True, 0, ""),
    ],
)
async def test_nothing_is_called_reserved_that_no_controller_reserves(
    capsys: pytest.CaptureFixture[str],
    renewed_before: float | None,
    reservation: bool,
    code: int,
    words: str,
) -> None:
    server = Server.started()
    if renewed_before is not None:
        elected(server, renewed_before=renewed_before)
    if reservation:
        server.reservation()
    result, shown = await told(capsys, server)
    assert (result, shown[0]) == (code, ANNOTATED if words else RESERVED)
    assert shown[1].startswith(words)
    assert shown[-2:] == LOOK_AND_UNDO


async def test_without_claimctl_in_the_cluster_the_annotation_alone_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, shown = await told(capsys, Server.started(crds=False))
    assert (code, shown[0]) == (3, ANNOTATED)
    assert shown[1].startswith("Nothing is reserved yet: claimctl is not installed")


async def test_who_may_not_look_is_told_that_it_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden")
        if point.plural in ("leases", "claimreservations")
        else None
    )
    code, shown = await told(capsys, server)
    assert (code, shown[0]) == (0, ANNOTATED)
    assert shown[1].startswith("Whether a controller acts is not known: you may not list ")


@pytest.mark.parametrize(("ready", "code"), [("True", 0), ("False", 3)])
async def test_a_wait_ends_when_the_reservation_is_ready_or_the_time_is_over(
    capsys: pytest.CaptureFixture[str], ready: str, code: int
) -> None:
    server = Server.started()
    elected(server)
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": "Holding",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    server.reservation(status={"observedGeneration": 1, "conditions": [condition]})
    result, shown = await told(capsys, server, limit=20.0)
    assert (result, shown[0]) == (code, RESERVED if code == 0 else ANNOTATED)


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
        ("deploy/train --wait --dry-run", "--wait and --dry-run exclude each other"),
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
