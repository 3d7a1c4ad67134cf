"""How to reach an API server as one user, and how a pod reaches its own."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from claimctl.kube.auth import Auth, StaticAuth, TokenFileAuth
from claimctl.kube.errors import ConfigError
from claimctl.kube.tls import Pem, Tls

_POD_HOST, _POD_PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAMESPACE_FILE = f"{_SERVICE_ACCOUNT}/namespace"
_TOKEN_FILE = f"{_SERVICE_ACCOUNT}/token"
_AUTHORITY_FILE = f"{_SERVICE_ACCOUNT}/ca.crt"


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


def in_cluster() -> Connection | None:
    """The connection of a pod by its ServiceAccount; None outside of pods.

    Raises:
        ConfigError: the pod has no token or no port of the server.
    """
    host, port = os.environ.get(_POD_HOST), os.environ.get(_POD_PORT, "")
    if not host:
        return None
    if not port:
        raise ConfigError(f"in-cluster: {_POD_PORT} is not set, although {_POD_HOST} is")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        Path(_TOKEN_FILE).read_bytes()
        authority = Path(_AUTHORITY_FILE).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"in-cluster: {error.filename}: {error.strerror}. Is the service account token mounted?"
        ) from error
    namespace = "default"
    with suppress(OSError):
        namespace = Path(_NAMESPACE_FILE).read_text(encoding="utf-8").strip() or namespace
    tls = Tls(authority=Pem(authority, f"in-cluster: {_AUTHORITY_FILE}"))
    tls.context()
    return Connection(
        server=server,
        auth=TokenFileAuth(_TOKEN_FILE, "in-cluster"),
        tls=tls,
        namespace=namespace,
        source="in-cluster",
    )
