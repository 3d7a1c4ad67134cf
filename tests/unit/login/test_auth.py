"""Credentials: from the kubeconfig, a plugin or a provider."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from claimctl.kube.connection import Connection, Credentials
from claimctl.kube.errors import ConfigError
from claimctl.login.connect import load_connection
from claimctl.login.in_cluster import TokenFileAuth
from claimctl.login.plugins import FetchedAuth
from tests.support.builders import NOW
from tests.unit.login.kubeconfigs import credentials, document, encoded, write


def test_user_and_password_become_basic_authorization(tmp_path: Path) -> None:
    content = document(user={"username": "u", "password": "p"})
    found = load_connection(write(tmp_path / "k", content))
    assert credentials(found).authorization == f"Basic {encoded('u:p')}"


def plugin(tmp_path: Path, script: str, **settings: Any) -> Connection:
    """A kubeconfig whose plugin is ``script``, named relative to it."""
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", **settings}
    return load_connection(write(tmp_path / "k", document(user={"exec": exec_})))


def answer(status: str) -> str:
    return (
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1",'
        f' "kind": "ExecCredential", "status": {status}}}\''
    )


COUNTING = 'n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n+1)); echo $n > "$0.n"\n'


def counting(status: str) -> str:
    return COUNTING + answer(status).replace("NUMBER", "'$n'")


@pytest.mark.parametrize(
    ("end", "refused", "runs"),
    [
        pytest.param("2126-01-01T00:00:00Z", False, 1, id="its token is good"),
        pytest.param("2020-01-01T00:00:00Z", False, 2, id="its token has ended"),
        pytest.param(None, True, 2, id="its token was refused"),
    ],
)
def test_a_plugin_is_run_again_for_a_token_that_is_not_good_any_more(
    tmp_path: Path, end: str | None, refused: bool, runs: int
) -> None:
    until = "" if end is None else f', "expirationTimestamp": "{end}"'
    auth = plugin(tmp_path, counting(f'{{"token": "t-NUMBER"{until}}}')).auth

    async def both() -> list[str]:
        first = await auth.credentials()
        second = await auth.credentials(first if refused else None)
        return [first.authorization, second.authorization]

    assert asyncio.run(both()) == ["Bearer t-1", f"Bearer t-{runs}"]


def test_a_plugin_gets_its_arguments_and_its_environment(tmp_path: Path) -> None:
    connection = plugin(
        tmp_path,
        answer('{"token": "NUMBER"}').replace("NUMBER", "'$1-$WHO'"),
        args=[7],
        env=[{"name": "WHO", "value": "me"}],
    )
    assert credentials(connection).authorization == "Bearer 7-me"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo no; (echo the; echo net) >&2; exit 3", "plugin: process returned 3: the net"),
        ("echo nonsense", "failed to decode process output"),
        ("echo '{}'", "malformed response. missing key 'apiVersion'"),
        (answer('"no"'), "'status' of its answer is not a mapping"),
        (answer("{}"), "gave neither a token nor a certificate with key"),
        (answer('{"token": "t", "expirationTimestamp": "soon"}'), "'soon' is not a time"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_in_one_line(
    tmp_path: Path, script: str, says: str
) -> None:
    connection = plugin(tmp_path, script)
    with pytest.raises(ConfigError) as caught:
        credentials(connection)
    text = str(caught.value)
    assert text.startswith(f"kubeconfig {tmp_path}/k: user 'u': exec")
    assert says in text
    assert "\n" not in text


def test_a_plugin_that_is_not_installed_is_named_with_its_hint(tmp_path: Path) -> None:
    exec_ = {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "get it at x"}
    connection = load_connection(write(tmp_path / "k", document(user={"exec": exec_})))
    with pytest.raises(ConfigError, match="no-such-plugin: No such file or directory; get it at x"):
        credentials(connection)


def test_an_auth_provider_that_fails_is_named(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "bad"}}}
    connection = load_connection(write(tmp_path / "k", document(user=user)))
    with pytest.raises(ConfigError, match="user 'u': auth-provider: oidc: JWT tokens should"):
        credentials(connection)


LONG, MINUTE, SHORT = 61.0, 60.0, 59.0
"""Seconds: a token file is read anew after a minute."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    return tmp_path / "token"


def put(file: Path, content: bytes | None) -> None:
    """Write a file; None deletes it."""
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("seconds", "rejected", "token"),
    [
        pytest.param(SHORT, "", "first", id="soon"),
        pytest.param(MINUTE, "", "second", id="after exactly a minute"),
        pytest.param(LONG, "", "second", id="after a minute"),
        pytest.param(SHORT, "Bearer first", "second", id="soon, but the token was rejected"),
        pytest.param(SHORT, "Bearer other", "first", id="soon, and an older one was rejected"),
    ],
)
async def test_a_token_file_is_read_anew(
    file: Path, seconds: float, rejected: str, token: str
) -> None:
    auth = TokenFileAuth(str(file), "user")
    assert await auth.credentials() == Credentials("Bearer first")
    put(file, b"second")
    await asyncio.sleep(seconds)
    found = await auth.credentials(Credentials(rejected) if rejected else None)
    assert found == Credentials(f"Bearer {token}")


async def test_without_its_file_the_last_token_is_used_again(file: Path) -> None:
    auth = TokenFileAuth(str(file), "user")
    await auth.credentials()
    put(file, None)
    await asyncio.sleep(LONG)
    assert await auth.credentials() == Credentials("Bearer first")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param(b"\xff\xfe", "not a text file", id="bytes that are no text"),
        pytest.param(b" \n", "the file is empty", id="an empty file"),
    ],
)
async def test_a_first_token_that_cannot_be_read_is_an_error(
    file: Path, content: bytes | None, words: str
) -> None:
    put(file, content)
    with pytest.raises(ConfigError, match=f"^user: .*token: {words}"):
        await TokenFileAuth(str(file), "user").credentials()


@pytest.mark.parametrize(
    ("left", "fetches"),
    [
        pytest.param(None, 1, id="no end is known"),
        pytest.param(timedelta(seconds=3600), 1, id="they last"),
        pytest.param(timedelta(), 2, id="they have expired"),
    ],
)
async def test_credentials_are_fetched_again_shortly_before_they_expire(
    left: timedelta | None, fetches: int
) -> None:
    count = 0

    async def fetch() -> tuple[Credentials, datetime | None]:
        nonlocal count
        count += 1
        return Credentials(f"Bearer {count}"), None if left is None else NOW + left

    auth = FetchedAuth(fetch, now=lambda: NOW)
    await auth.credentials()
    assert await auth.credentials() == Credentials(f"Bearer {fetches}")
