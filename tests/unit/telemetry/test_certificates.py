"""Health and metrics by HTTPS, with a certificate that is replaced while the server runs."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs
from trustme import CA

from claimctl.cli.main import run
from claimctl.telemetry.health import Certificate, HealthServer, HealthServerError, Probes


def written(authority: CA, folder: Path) -> tuple[Path, Path]:
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = folder / "tls.crt", folder / "tls.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    return certificate, key


async def healthy(url: str, authority: CA) -> bool:
    trust = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{url}/healthz", ssl=trust) as answer:
                return answer.status == 200
        except aiohttp.ClientSSLError:
            return False


@pytest.mark.real_time(30)
async def test_a_new_certificate_is_taken_without_a_restart(tmp_path: Path) -> None:
    first, second = CA(), CA()
    certificate = Certificate(*written(first, tmp_path))
    async with HealthServer(Probes(), "127.0.0.1:0", certificate) as server:
        assert server.url.startswith("https://")
        assert await healthy(server.url, first)
        assert not await healthy(server.url, second)
        written(second, tmp_path)
        await healthy(server.url, first)
        assert await healthy(server.url, second)


def test_files_that_do_not_fit_leave_the_old_certificate(tmp_path: Path) -> None:
    files = written(CA(), tmp_path)
    certificate = Certificate(*files)
    files[1].write_text("no key")
    with capture_logs() as lines:
        certificate.refresh()
        certificate.refresh()
    assert [line["event"] for line in lines] == ["the new certificate cannot be used"]


def test_files_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(HealthServerError, match=r"cannot read .*none.*: No such file"):
        Certificate(tmp_path / "none.crt", tmp_path / "none.key")
    (tmp_path / "x").write_text("x")
    with pytest.raises(HealthServerError, match=r"cannot use .*x with .*x: "):
        Certificate(tmp_path / "x", tmp_path / "x")


def test_one_file_without_the_other_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["controller", "--tls-cert-file", "tls.crt"]) == 2
    assert capsys.readouterr().err == (
        "error: --tls-cert-file and --tls-private-key-file go together: give both\n"
    )
