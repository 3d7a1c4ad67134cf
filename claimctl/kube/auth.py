"""The credentials of a connection: fixed ones, or a token file that another program renews."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from claimctl.kube.errors import ConfigError
from claimctl.kube.tls import Pem

log = structlog.get_logger(__name__)

_TOKEN_FILE_SECONDS = 60.0


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
