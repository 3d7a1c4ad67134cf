"""The TLS settings of a connection. Errors name the field at fault."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from claimctl.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM data, not checked yet, and the field that names it."""

    data: bytes = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class Tls:
    """How to verify the server, and which client certificate to use."""

    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Make a context. Raises ConfigError, which names the field with unusable content."""
        context = self._create_context()
        if hasattr(ssl, "VERIFY_X509_STRICT"):
            # strict checking, the default from Python 3.13, requires extensions that the CA
            # certificates of older tools lack; kubectl accepts them
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            _load_chain(context, self.certificate, self.key)
        return context

    def _create_context(self) -> ssl.SSLContext:
        if self.authority is None:
            return ssl.create_default_context()
        try:
            return ssl.create_default_context(cadata=self.authority.data.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{self.authority.where}: no PEM certificate in it") from error


def _load_chain(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """Load the client certificate, by temporary files: the ssl module reads only files."""
    with tempfile.TemporaryDirectory(prefix="claimctl-") as directory:
        files = [Path(directory, name) for name in ("certificate.pem", "key.pem")]
        for file, source in zip(files, (certificate, key), strict=True):
            file.write_bytes(source.data)
        try:
            context.load_cert_chain(files[0], files[1], password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error) or "unusable"
            words = reason.replace("_", " ").lower() if reason.isupper() else reason
            text = f"{certificate.where}: does not go with {key.where}: {words}"
            raise ConfigError(text) from error


def _no_password() -> str:
    raise ValueError("the key is encrypted; kubeconfigs cannot hold its password")
