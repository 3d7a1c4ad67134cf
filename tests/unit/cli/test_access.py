"""kubectl's connection flags: what they mean, and that every command takes them."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from claimctl.cli.access import (
    DEFAULT,
    NO_LIMIT,
    REQUEST_SECONDS,
    Access,
    connecting,
    connecting_patiently,
)
from claimctl.cli.main import load, run
from claimctl.cli.registry import COMMANDS
from claimctl.cli.session import PATIENCE_SECONDS, _Announcing, connection_of
from claimctl.wire.seams import Query, Response

KUBECONFIG = """\
clusters:
- {name: a, cluster: {server: "http://a.example.com", tls-server-name: old}}
- {name: b, cluster: {server: "http://b.example.com"}}
users:
- {name: one, user: {token: t-one}}
- {name: two, user: {username: n, password: p}}
contexts:
- {name: main, context: {cluster: a, user: one, namespace: ml}}
current-context: main
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return str(path)


async def test_the_context_alone_decides_without_flags(config: str) -> None:
    found = connection_of(Access(config))
    assert (found.server, found.namespace, found.headers) == ("http://a.example.com", "ml", ())
    assert (await found.auth.credentials()).authorization == "Bearer t-one"


async def test_every_flag_replaces_its_part(config: str) -> None:
    found = connection_of(
        Access(
            config,
            cluster="b",
            user="two",
            tls_server_name="new",
            as_user="jane",
            as_uid="u-1",
            as_groups=["g1", "g2"],
        )
    )
    assert (found.server, found.server_name) == ("http://b.example.com", "new")
    assert (await found.auth.credentials()).authorization.startswith("Basic ")
    assert found.headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
    )


async def test_a_token_replaces_other_credentials(config: str) -> None:
    found = connection_of(Access(config, user="two", token="mine", server="http://c.example.com"))
    assert found.server == "http://c.example.com"
    assert (await found.auth.credentials()).authorization == "Bearer mine"


async def test_a_server_is_enough_without_a_kubeconfig(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = connection_of(Access(server="http://127.0.0.1:1/", token="mine"))
    assert (found.server, found.namespace) == ("http://127.0.0.1:1", "default")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--as-group", "g"], "--as-group needs --as, the user to impersonate"),
        (["--as-uid", "u"], "--as-uid needs --as, the user to impersonate"),
        (["--cluster", "x"], "--cluster: cluster 'x', which does not exist; there are: a, b"),
        (["--user", "x"], "--user: user 'x', which does not exist; there are: one, two"),
        (["--server", "nonsense"], "--server: server 'nonsense' is not an http(s) URL"),
        (["--certificate-authority", "/nosuch"], "there is no file /nosuch"),
        (["--request-timeout", "soon"], "'soon' is not a duration like 30s, 5m or 1h30m"),
    ],
)
def test_a_bad_flag_is_one_line(
    flags: list[str], line: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["get", "--kubeconfig", config, *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert line in err


WITHOUT_A_CLUSTER = {
    *("demo cluster", "demo", "completion"),
    "controller",  # it takes what a Deployment gives it
}


def test_every_command_that_asks_a_cluster_takes_every_flag() -> None:
    for entry in COMMANDS:
        flags = {flag for each in load(entry).params for flag in each.opts}
        if entry.name not in WITHOUT_A_CLUSTER:
            assert {"--server", "--token", "--as-uid", "--request-timeout"} <= flags, entry.name


def test_a_command_gets_the_flags_as_one_value() -> None:
    seen: list[tuple[str, Access]] = []

    @connecting
    def command(name: str = "", access: Access = DEFAULT) -> int:
        """Help."""
        seen.append((name, access))
        return 0

    assert "access" not in inspect.signature(command).parameters
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    typer.main.get_command(app)(
        args=["--name", "x", "--as", "jane", "--as-group", "g", "--request-timeout", "2m"],
        standalone_mode=False,
    )
    wanted = Access(as_user="jane", as_groups=["g"], request_timeout=120.0)
    assert seen == [("x", wanted)]


class SlowTransport:
    """A transport that breaks the connection after a while."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        await asyncio.sleep(PATIENCE_SECONDS * 2)
        raise ConnectionError


def test_commands_with_much_to_do_limit_only_the_first_answer() -> None:
    patient = {
        entry.name
        for entry in COMMANDS
        for each in load(entry).params
        if each.name == "request_timeout" and each.default == NO_LIMIT
    }
    steps = ("prepare", "status", "restore")
    edges = {f"{edge}{step}" for edge in ("downgrade ", "upgrade ") for step in steps}
    leaving = {"uninstall prepare", "uninstall verify", "uninstall run"}
    assert patient == edges | leaving | {"install", "doctor driver", "doctor orphans", "reschedule"}


@pytest.mark.parametrize(("flags", "limit"), [([], 0.0), (["--request-timeout", "5s"], 5.0)])
def test_a_patient_command_gives_a_silent_server_up_all_the_same(
    flags: list[str], limit: float
) -> None:
    seen: list[Access] = []

    @connecting_patiently
    def command(access: Access = DEFAULT) -> int:
        """Help."""
        seen.append(access)
        return 0

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    typer.main.get_command(app)(args=flags, standalone_mode=False)
    assert seen == [Access(request_timeout=limit, first_timeout=REQUEST_SECONDS)]


async def test_a_long_wait_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    made = _Announcing(SlowTransport(), "http://a.example.com")
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await made.send("GET", "/", (), {}, None)
    assert capsys.readouterr().err == "waiting for an answer from http://a.example.com ...\n"


@contextmanager
def silent() -> Iterator[str]:
    """A server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_never_answers_is_given_up_after_the_request_timeout(config: str) -> None:
    with silent() as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "claimctl", "get", "--kubeconfig", config),
                *("--server", url, "--request-timeout", "300ms"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    # The API groups are asked side by side: any of them may be the first to be given up.
    assert re.fullmatch(r"error: GET /apis/[a-z0-9.]+: no answer within 0\.3 s\n", done.stderr)
