"""aiohttp reads no certificates when it is imported, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pems import AUTHORITY

PROGRAM = """
import os, ssl
from claimctl.kube.aiohttp_alone import aiohttp
print(len(aiohttp.connector._SSL_CONTEXT_VERIFIED.get_ca_certs()))
print(len(ssl.create_default_context().get_ca_certs()))
print(os.environ.get("SSL_CERT_FILE"))
"""


@pytest.mark.parametrize("named", [True, False])
def test_only_the_import_does_without_certificates(tmp_path: Path, named: bool) -> None:
    file = tmp_path / "all.pem"
    file.write_text(AUTHORITY)
    environment = {key: text for key, text in os.environ.items() if key != "SSL_CERT_FILE"}
    chosen = {"SSL_CERT_FILE": str(file)} if named else {}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, **chosen},
        capture_output=True,
        text=True,
        check=True,
    )
    read, trusted, variable = done.stdout.split()
    assert (read, variable) == ("0", chosen.get("SSL_CERT_FILE", "None"))
    assert trusted == "1" or not named
