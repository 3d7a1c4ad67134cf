"""A certificate for 127.0.0.1: kubectl sends tokens over TLS only."""

from __future__ import annotations

import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_DAYS = "3650"
_TIMEOUT_SECONDS = 30


class NoCertificate(Exception):
    """A certificate could not be made; one line."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``certificate`` is PEM, for clients to trust."""

    certificate: str
    context: ssl.SSLContext


def loopback_identity() -> Identity:
    """A new self-signed certificate, made by openssl; its key is on disk for a moment only.

    Raises:
        NoCertificate: openssl is missing or fails.
    """
    with tempfile.TemporaryDirectory() as directory:
        key, certificate = Path(directory, "key.pem"), Path(directory, "certificate.pem")
        _make(key, certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return Identity(certificate.read_text("ascii"), context)


def _make(key: Path, certificate: Path) -> None:
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", _DAYS, "-subj", "/CN=claimctl-embedded"),
        *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        *("-keyout", str(key), "-out", str(certificate)),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS)
    except FileNotFoundError as error:
        raise NoCertificate("RBAC needs TLS, and the program openssl is not there") from error
    except (subprocess.SubprocessError, OSError) as error:
        raise NoCertificate(f"openssl could not make a certificate: {error}") from error
