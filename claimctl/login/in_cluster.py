"""How a pod reaches its own API server, by a token file that another program renews."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from claimctl.kube.connection import Connection, Credentials, Pem, Tls
from claimctl.kube.errors import ConfigError
from claimctl.telemetry.face import LateLogger

log = LateLogger(__name__)

_TOKEN_FILE_SECONDS = 60.0
_POD_HOST, _POD_PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAMESPACE_FILE = f"{_SERVICE_ACCOUNT}/namespace"
_TOKEN_FILE = f"{_SERVICE_ACCOUNT}/token"
_AUTHORITY_FILE = f"{_SERVICE_ACCOUNT}/ca.crt"


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


class TokenFileAuth:
    """A token file that another program renews, such as a pod's ServiceAccount token."""

    def __init__(self, path: str, where: str) -> None:
        self._path = Path(path)
        self._where = where
        self._last: Credentials | None = None
        self._read_at = 0.0

    async def credentials(self, rejected: Credentials | None = None) -> Credentials:
        now = asyncio.get_running_loop().time()
        fresh = now - self._read_at < _TOKEN_FILE_SECONDS
        if self._last is not None and self._last != rejected and fresh:
            return self._last
        try:
            self._last = self._read()
        except ConfigError as error:
            if self._last is None:
                raise
            log.warning("token file cannot be read, the last token is used", error=str(error))
        self._read_at = now
        return self._last

    def _read(self) -> Credentials:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise ConfigError(f"{self._where}: {self._path}: {reason}") from error
        if not token:
            raise ConfigError(f"{self._where}: {self._path}: the file is empty")
        return Credentials(f"Bearer {token}")
