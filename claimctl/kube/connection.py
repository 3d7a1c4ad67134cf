"""How to reach an API server as one user: its address, the credentials, and TLS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from claimctl.kube.tls import Pem, Tls


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
