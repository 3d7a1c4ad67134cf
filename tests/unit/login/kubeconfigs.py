"""Kubeconfig files for tests, and what becomes of them."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.kube.connection import Connection, Credentials
from claimctl.kube.errors import ConfigError
from claimctl.login.connect import load_connection


def document(
    cluster: dict[str, Any] | None = None, user: Any = None, current: Any = "x", **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://kube.test:6443", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "current-context": current,
        **more,
    }


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def credentials(connection: Connection, rejected: Credentials | None = None) -> Credentials:
    return asyncio.run(connection.auth.credentials(rejected))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def problem(path: str | None, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_connection(path, context)
    text = str(caught.value)
    assert "\n" not in text
    return text
