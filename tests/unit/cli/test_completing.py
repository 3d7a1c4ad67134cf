"""Names that a shell completes, for claimctl and as kubectl's plugin."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kube_in_process.http.listener import serve
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.cli.completion import VARIABLE
from claimctl.cli.kubectl_completion import NO_FILES, suggestions
from tests.support.claim_server import Server
from tests.support.hostile import TEXT, texts


@contextmanager
def served() -> Iterator[str]:
    """A server with two claims, a pod and a Deployment, on a loop of its own."""
    ready, loop, urls = threading.Event(), asyncio.new_event_loop(), list[str]()
    done = asyncio.Event()

    async def play() -> None:
        made = Server.started("ml", "mine")
        made.deployment()
        made.claim("slice")
        made.claim("other")
        made.pod("slicer")
        handle = await serve(made.handler)
        urls.append(handle.url)
        ready.set()
        await done.wait()
        await handle.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(play()))
    thread.start()
    try:
        assert ready.wait(30)
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(30)
        loop.close()


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("completing") / "config"
    with served() as url:
        write_kubeconfig(path, Access(url))
        yield str(path)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["get", "-n", "ml", ""], ["other", "slice"]),
        (["release", "-n", "ml", "sl"], ["slice"]),
        (["explain", "-n", "ml", "sl"], ["slice"]),
        (["explain", "-n", "ml", "po"], ["pod/"]),
        (["explain", "-n", "ml", "pod/s"], ["pod/slicer"]),
        (["explain", "-n", "ml", "deploy/"], ["deploy/train"]),
        (["explain", "-n", "ml", "secrets/"], []),
        (["timeline", "-n", "ml", "claim/o"], ["claim/other"]),
        (["get", "-n", "m"], ["mine", "ml"]),
        (["get", "--context", ""], ["embedded"]),
        (["get", "--cluster", "e"], ["embedded"]),
        (["rel"], ["release"]),
        (["downgrade", "s"], ["status"]),
        (["completion", "z"], ["zsh"]),
        (["version", "--out"], ["--output"]),
        (["get", "-o", "j"], ["json"]),
    ],
)
def test_names_are_completed(
    words: list[str], found: list[str], kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    assert suggestions(words) == found


def test_the_kubeconfig_of_the_line_counts(kubeconfig: str) -> None:
    assert suggestions(["get", "--kubeconfig", kubeconfig, "-n", "ml", "s"]) == ["slice"]


@pytest.mark.parametrize("config", ["/nosuch/config", "/dev/null"])
def test_without_a_cluster_there_is_nothing_to_offer(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", config)
    assert suggestions(["get", ""]) == []
    assert suggestions(["get", "--context", ""]) == []


def test_only_names_that_a_shell_takes_as_one_word_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubeconfig may come from somebody else, and zsh evaluates what it is offered."""
    plain = ["admin@ml.example.com", "arn:aws:eks:eu-west-1:1:cluster/ml", "gke_p_z_ml"]
    names = [
        *plain,
        "$(id)",
        "a b",
        "a'b",
        'a"b',
        "a`id`",
        "a;id",
        "a|b",
        "a\\b",
        TEXT,
        *texts(3, 9),
    ]
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump({"contexts": [{"name": name} for name in names]}))
    monkeypatch.setenv("KUBECONFIG", str(config))
    assert suggestions(["get", "--context", ""]) == plain


def test_a_silent_server_is_soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claimctl.cli.cluster_names.SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert suggestions(["get", "--server", url, ""]) == []


def test_kubectl_gets_a_line_for_each_and_a_directive(kubeconfig: str) -> None:
    script = "from claimctl.cli.kubectl_completion import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "get", "-n", "ml", ""],
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["other", "slice", NO_FILES]


def test_a_shell_gets_them_too(kubeconfig: str) -> None:
    words = "claimctl get -n ml s"
    done = subprocess.run(
        [sys.executable, "-m", "claimctl"],
        env={
            **os.environ,
            "KUBECONFIG": kubeconfig,
            VARIABLE: "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["slice"])


def test_a_terminal_that_completes_writes_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "config"
    broken.write_text("a: [")
    monkeypatch.setenv("KUBECONFIG", str(broken))
    assert suggestions(["get", ""]) == []
    assert capsys.readouterr() == ("", "")
