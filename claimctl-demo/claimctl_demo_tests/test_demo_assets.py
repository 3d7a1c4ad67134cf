"""``claimctl demo --assets``: refusals, and the story on real programs if there are any."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from kube_in_process.real.nodes.needs import find_tools
from kube_in_process.real.servers.programs import API_SERVER, CannotStart, find_programs
from kube_in_process_tests.real.scripts import folder_of, write

from tests.e2e.commands import CommandAnswer, claimctl

ASSETS = "KUBEBUILDER_ASSETS"


def run(*arguments: str, seconds: float = 120.0) -> CommandAnswer:
    return asyncio.run(claimctl(*arguments, seconds=seconds))


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("--reservation-mode", "native"), "--reservation-mode"),
        (("--kubernetes-version", "1.36"), "--kubernetes-version"),
    ],
)
def test_options_that_mean_nothing_beside_assets_are_bad_input(
    tmp_path: Path, arguments: tuple[str, ...], flag: str
) -> None:
    done = run("demo", "--assets", str(tmp_path), *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {flag}: ")
    assert done.err.count("\n") == 1


def test_nodes_without_programs_are_bad_input() -> None:
    done = run("demo", "--nodes", "2")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: --nodes: real nodes need real programs; name their folder with --assets\n"
    )


@pytest.mark.parametrize("count", ["0", "4"])
def test_a_number_of_nodes_that_is_not_possible_is_bad_input(count: str, tmp_path: Path) -> None:
    done = run("demo", "--assets", str(tmp_path), "--nodes", count)
    assert (done.code, done.out) == (2, "")
    assert "'--nodes'" in done.err
    assert done.err.count("\n") == 1


def test_what_nodes_lack_is_one_line(tmp_path: Path) -> None:
    done = run("demo", "--assets", str(tmp_path), "--nodes", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: --nodes: ")
    assert done.err.count("\n") == 1


def test_a_folder_without_the_programs_is_one_line(tmp_path: Path) -> None:
    done = run("demo", "--assets", str(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: --assets: {tmp_path}/etcd is missing; "
        "put the program there, or name another folder\n"
    )


def test_a_server_that_ends_while_it_starts_is_one_line_with_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    write(folder_of(tmp_path), API_SERVER, 'echo "E0101 no luck today"; exit 7')
    done = run("demo", "--assets", str(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: --assets: kube-apiserver has ended with exit code 7: E0101 no luck today\n"
    )


def _dialects() -> list[str]:
    """What the programs of this machine can play; nothing where there are none."""
    try:
        version = find_programs(Path(os.environ.get(ASSETS, "/nowhere"))).version
    except CannotStart:
        return []
    return ["hold", "podgroup"] if version >= (1, 36) else ["hold"]


def can_have_nodes() -> bool:
    try:
        find_tools(Path(os.environ.get(ASSETS, "/nowhere")))
    except CannotStart:
        return False
    return True


@pytest.mark.skipif(ASSETS not in os.environ, reason=f"{ASSETS} names no programs")
@pytest.mark.parametrize("dialect", _dialects())
def test_the_story_comes_true_on_real_programs(dialect: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    flags = ("--reservation-mode", dialect, "-o", "json", "--html", str(page))
    done = run("demo", "--assets", os.environ[ASSETS], *flags, seconds=600)
    assert (done.code, done.err) == (0, ""), done.out + done.err
    report = json.loads(done.out)
    assert (report["ok"], report["violations"]) == (True, 0)
    assert report["playedOn"].startswith("Kubernetes v1.")
    text = page.read_text()
    assert len(re.findall(r"<h3>[A-Z]: claim ", text)) >= 5
    assert "Played on Kubernetes v1." in text


@pytest.mark.skipif(not can_have_nodes(), reason=f"{ASSETS} has no kubelet, or nodes cannot run")
def test_the_story_comes_true_on_real_nodes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    flags = ("--nodes", "2", "-o", "json", "--html", str(page))
    done = run("demo", "--assets", os.environ[ASSETS], *flags, seconds=600)
    assert (done.code, done.err) == (0, ""), done.out + done.err
    report = json.loads(done.out)
    assert (report["ok"], report["violations"]) == (True, 0)
    assert "prepared on node-" in page.read_text()
