"""How to reach an API server as one user: its address, the credentials, and TLS."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class Credentials:
    """The value of the Authorization header, and a client certificate if a plugin returned one."""

    authorization: str = field(default="", repr=False)
    certificate: Pem | None = None
    key: Pem | None = field(default=None, repr=False)


class Auth(Protocol):
    async def credentials(self, rejected: Credentials | None = None) -> Credentials:
        """Return credentials, fresh ones if possible.

        Args:
            rejected: credentials that the server has refused.

        Raises:
            ConfigError: there are no credentials.
        """
        ...


@dataclass(frozen=True, slots=True)
class StaticAuth:
    """Credentials that the kubeconfig contains."""

    fixed: Credentials = Credentials()

    async def credentials(self, rejected: Credentials | None = None) -> Credentials:
        return self.fixed


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one API server as one user.

    Attributes:
        server: the URL, without a slash at its end; it may have a path.
        namespace: the default of ``-n``.
        context: the name of the kubeconfig's context; empty in a pod.
        source: where the connection was read from, for messages.
        headers: headers of every request (impersonation).
        server_name: the name in the server's certificate; empty means the host of ``server``.
        proxy: the URL of an HTTP proxy; empty means the proxy of the environment.
    """

    server: str
    auth: Auth = field(default_factory=StaticAuth)
    tls: Tls = field(default_factory=Tls)
    namespace: str = "default"
    context: str = ""
    source: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    server_name: str = ""
    proxy: str = ""
