"""``claimctl manifests``: flags and bad input."""

from __future__ import annotations

import json

import pytest
import yaml

from claimctl import __version__
from claimctl.cli.main import run


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["manifests", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_it_prints_the_base_installation(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(yaml.safe_load_all(printed(capsys)))
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"claimctl:{__version__}"
    assert "PodMonitor" not in [each["kind"] for each in found]


def test_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--component", "crds", "-o", "json"))
    assert (found["kind"], len(found["items"])) == ("List", 3)


def test_components_are_put_together_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("--component", "network-policy", "--component", "base", "--component", "crds")
    found = list(yaml.safe_load_all(printed(capsys, *wanted, "-n", "gpus", "--image", "i:1")))
    kinds = [each["kind"] for each in found]
    assert kinds.count("CustomResourceDefinition") == 3
    assert kinds[-1] == "NetworkPolicy"
    assert found[-1]["metadata"]["namespace"] == "gpus"


def test_alerts_have_links_where_the_pages_are_on_the_web(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def annotations(*arguments: str) -> dict[str, str]:
        given = ("--component", "monitoring", *arguments)
        [found] = [
            each
            for each in yaml.safe_load_all(printed(capsys, *given))
            if each["kind"] == "PrometheusRule"
        ]
        shown: dict[str, str] = found["spec"]["groups"][0]["rules"][0]["annotations"]
        return shown

    assert annotations()["runbook"] == "docs/runbooks/alerts/ClaimctlNoLeader.md"
    assert "runbook_url" not in annotations()
    link = annotations("--runbook-url", "https://example.com/{alert}/")["runbook_url"]
    assert link == "https://example.com/ClaimctlNoLeader/"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--component", "nosuch"], "--component: 'nosuch' is not one of crds, rbac, controller"),
        (["--image", "a b"], "--image: 'a b' is not the name of an image"),
        (["--image", "registry/claimctl:"], "is not the name of an image"),
        (["-n", "Not_a_namespace"], "'Not_a_namespace' is not a DNS label"),
        (["--runbook-url", "https://x"], "--runbook-url: 'https://x' is not a URL with the word"),
        (["-o", "table"], "'table' is not one of"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["manifests", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
