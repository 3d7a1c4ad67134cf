"""The bundle for a bug report: what is in it, and what is not."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.cli.main import run
from claimctl.cli.session import Session
from claimctl.commands.doctor.bundle import Bundle
from claimctl.commands.doctor.report_work import gathered, write
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected


def furnished() -> Server:
    server = Server.started(NAMESPACE, "other")
    elected(server)
    server.claim("slice", server.deployment())
    server.reservation()
    server.claim("distant", {"resource": "pods", "name": "p", "uid": "u"}, namespace="other")
    for kind in ("secrets", "configmaps"):
        data = (
            {"data": {"key": "aHVudGVyMg=="}} if kind == "secrets" else {"data": {"k": "hunter2"}}
        )
        server.admin.create(kind, {"metadata": {"name": "s", "namespace": NAMESPACE}, **data})
    return server


def session(server: Server) -> Session:
    return Session(server.client, server.clock, NAMESPACE, server.spoiling)


async def test_it_has_objects_explanations_checks_and_versions() -> None:
    bundle = await gathered(session(furnished()), NAMESPACE)
    assert {
        *("version.txt", "doctor.txt", "doctor.json", "claims.txt", "problems.txt"),
        *("explain/ml/slice.txt", "objects/resourceclaims.yaml", "objects/deployments.yaml"),
        *("objects/claimreservations.yaml", "objects/leases.yaml"),
    } <= bundle.files.keys()
    assert "deployments/train is listed" in bundle.files["explain/ml/slice.txt"]
    assert "slice" in bundle.files["claims.txt"]


async def test_it_has_one_namespace_or_all() -> None:
    one = await gathered(session(furnished()), NAMESPACE)
    every = await gathered(session(furnished()), "")
    assert "distant" not in str(one.files)
    assert "explain/other/distant.txt" in every.files


async def test_it_has_no_secrets() -> None:
    bundle = await gathered(session(furnished()), "")
    text = str(bundle.files)
    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text


async def test_what_may_not_be_read_is_told_and_the_rest_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = furnished()

    def hook(point: FaultPoint) -> Fault | None:
        return Fault(status=403, reason="Forbidden") if point.plural == "pods" else None

    server.handler.fault = hook
    bundle = await gathered(session(server), NAMESPACE)
    assert "objects/claimreservations.yaml" in bundle.files
    assert "403 Forbidden" in bundle.files["problems.txt"]
    assert "warning: " in capsys.readouterr().err


def test_the_file_is_new_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.zip"
    write(path, Bundle({"a/b.txt": "text"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        assert archive.read("report/a/b.txt") == b"text"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-A", "-n", "ml"], "exclude each other"),
        (["--file", "/nosuch/x.zip"], "--file: there is no directory /nosuch"),
        (["--file", "/dev/null"], "--file: /dev/null exists; name another one"),
    ],
)
def test_bad_input(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "report", *arguments]) == 2
    assert line in capsys.readouterr().err
