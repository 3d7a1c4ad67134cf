"""Credentials that must be fetched: by an exec plugin, or by a provider of the official client."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from claimctl.kube.connection import Credentials, Pem
from claimctl.kube.errors import ConfigError
from claimctl.login.kubeconfig import Entry

_EARLY = timedelta(seconds=30)
_PLUGIN_SECONDS = 60.0


class FetchedAuth:
    """Credentials that a function fetches, one fetch at a time.

    ``fetch`` returns credentials and the time at which they expire, or None if it is unknown.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[tuple[Credentials, datetime | None]]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = asyncio.Lock()
        self._last: Credentials | None = None
        self._ends: datetime | None = None

    async def credentials(self, rejected: Credentials | None = None) -> Credentials:
        async with self._lock:
            expired = self._ends is not None and self._now() >= self._ends - _EARLY
            if self._last is None or self._last == rejected or expired:
                self._last, self._ends = await self._fetch()
            return self._last


def exec_auth(user: Entry) -> FetchedAuth:
    """Credentials from the ``exec`` plugin of a kubeconfig user."""
    where = f"{user.where}: exec"
    settings = _exec_settings(user, where)

    async def fetch() -> tuple[Credentials, datetime | None]:
        return _from_plugin(await _run_plugin(settings, where), where)

    return FetchedAuth(fetch)


def provider_auth(config: Mapping[str, Any], user: Entry) -> FetchedAuth:
    """Credentials from the ``auth-provider`` of a kubeconfig user, by the official client."""

    async def fetch() -> tuple[Credentials, datetime | None]:
        from kubernetes.aio.client import Configuration
        from kubernetes.aio.config.kube_config import KubeConfigLoader

        configuration = Configuration()
        try:
            loader = KubeConfigLoader(config_dict=dict(config), config_base_path="")
            await loader.load_and_set(configuration)
        except Exception as error:  # a provider's library may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ConfigError(f"{user.where}: auth-provider: {reason}") from error
        return Credentials(configuration.api_key.get("BearerToken", "")), None

    return FetchedAuth(fetch)


def _exec_settings(user: Entry, where: str) -> dict[str, Any]:
    settings = user.value["exec"]
    if not isinstance(settings, dict):
        raise ConfigError(f"{where} must be a mapping with apiVersion and command")
    for key in ("apiVersion", "command"):
        if not isinstance(settings.get(key), str) or not settings[key]:
            raise ConfigError(f"{where}: {key} is missing")
    command = settings["command"]
    if os.sep in command:
        # a path is relative to the kubeconfig; a bare name is looked up in PATH
        command = str(user.directory / command)
    variables = settings.get("env") or []
    if not all(isinstance(item, dict) and {"name", "value"} <= item.keys() for item in variables):
        raise ConfigError(f"{where}: every entry of env needs a name and a value")
    return {
        "apiVersion": settings["apiVersion"],
        "command": command,
        "args": [str(argument) for argument in settings.get("args") or []],
        "env": [{"name": str(v["name"]), "value": str(v["value"])} for v in variables],
        "installHint": str(settings.get("installHint") or ""),
    }


async def _run_plugin(settings: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    from kubernetes.aio.config.config_exception import ConfigException
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import ConfigNode

    command = settings["command"]
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            status = await ExecProvider(ConfigNode("exec", dict(settings))).run()
    except TimeoutError as error:
        raise ConfigError(f"{where}: {command} took longer than {_PLUGIN_SECONDS:g} s") from error
    except ConfigException as error:
        raise ConfigError(f"{where}: {command}: {_plugin_reason(str(error))}") from error
    except OSError as error:
        hint = settings["installHint"].strip() or "install the plugin or correct 'command'"
        raise ConfigError(f"{where}: {command}: {error.strerror}; {hint}") from error
    if not isinstance(status, dict):
        raise ConfigError(f"{where}: {command}: 'status' of its answer is not a mapping")
    return status


def _plugin_reason(text: str) -> str:
    """The plugin's message without the official client's additions: a prefix and a bytes repr."""
    plain = re.sub(r"\. b(['\"])(.*)\1$", r": \2", text.removeprefix("exec: "), flags=re.DOTALL)
    return " ".join(plain.replace("\\n", " ").split())


def _from_plugin(status: Mapping[str, Any], where: str) -> tuple[Credentials, datetime | None]:
    token = status.get("token") or ""
    certificate = status.get("clientCertificateData") or ""
    key = status.get("clientKeyData") or ""
    if not token and not (certificate and key):
        raise ConfigError(f"{where}: the plugin gave neither a token nor a certificate with key")
    made = Credentials(
        f"Bearer {token.strip()}" if token else "",
        Pem(certificate.encode(), f"{where}: clientCertificateData") if certificate else None,
        Pem(key.encode(), f"{where}: clientKeyData") if key else None,
    )
    return made, _expiry(status.get("expirationTimestamp"), where)


def _expiry(text: object, where: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise ConfigError(f"{where}: expirationTimestamp {text!r} is not a time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
