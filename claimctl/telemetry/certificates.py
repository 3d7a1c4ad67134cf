"""The certificate of the health server, which may be replaced while the server runs."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from claimctl.telemetry.settings import BindError

log = structlog.get_logger(__name__)


class Certificate:
    """A certificate with its key, in two PEM files.

    cert-manager and the kubelet replace such files. ``refresh`` takes the new ones for the
    connections that come then.

    Raises:
        BindError: the files cannot be read, or do not belong together.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._seen = self._versions()
        self._load()

    def refresh(self) -> None:
        """Load the files again if they have changed. Files that cannot be used change nothing."""
        try:
            versions = self._versions()
            if versions == self._seen:
                return
            self._seen = versions
            self._load()
        except BindError as error:
            log.warning("the new certificate cannot be used", error=str(error))

    def _versions(self) -> list[tuple[int, int]]:
        try:
            stats = [file.stat() for file in self._files]
        except OSError as error:
            raise BindError(f"cannot read {error.filename}: {error.strerror}") from None
        return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]

    def _load(self) -> None:
        certificate, key = self._files
        try:
            # a new context first: a pair that does not fit must not replace one that does
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            self.context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise BindError(f"cannot use {certificate} with {key}: {why}") from None
