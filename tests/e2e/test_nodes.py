"""What is written for scenarios on real nodes, without nodes: names, containers, refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kube_in_process.real.nodes.images import IMAGE

from tests.e2e import manifests
from tests.e2e.nodes import scenarios
from tests.e2e.nodes.__main__ import main
from tests.e2e.nodes.nodes import make_deaf
from tests.e2e.nodes.places import NodePlaces

HERE = Path(__file__).parent


def test_each_scenario_that_is_treated_on_its_own_exists() -> None:
    texts = "".join(Path(path).read_text() for path in scenarios.files(core=False))
    there = set(re.findall(r"def (test_\w+)", texts))
    left_out = {name for names in scenarios.LEFT_OUT.values() for name in names}
    assert sorted((scenarios.DISTURBING | left_out) - there) == []


def test_the_core_is_part_of_the_whole() -> None:
    core, whole = scenarios.files(core=True), scenarios.files(core=False)
    assert {Path(path).name for path in core} > {"test_kubelets.py", "test_controller_hold.py"}
    assert set(core) < set(whole)


@pytest.mark.parametrize("folder", ["", "/nowhere"])
def test_what_is_missing_is_one_line(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", folder)
    assert main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("skipped: scenarios on real nodes (")


def container(body: manifests.Body, **places: object) -> manifests.Body:
    rewritten = NodePlaces("abc", **places).body(body)  # type: ignore[arg-type]  # by name
    (found,) = rewritten["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_containers_run_the_image_of_the_nodes_until_they_are_told_to_end() -> None:
    found = container(manifests.deployment())
    assert (found["image"], found["imagePullPolicy"]) == (IMAGE, "Never")
    assert found["args"] == []


def test_a_rollout_to_another_image_stays_one() -> None:
    other = manifests.deployment()
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert container(other) != container(manifests.deployment())


def test_pods_of_jobs_end_by_themselves_and_deaf_ones_do_not_listen() -> None:
    assert container(manifests.job(), job_seconds=2.0)["args"] == ["2.0", "0"]
    assert container(manifests.job(seconds=7))["args"] == ["7", "0"]
    assert container(make_deaf(manifests.deployment(), 5))["args"] == ["deaf"]


def test_pods_are_kept_on_one_node_only_where_a_scenario_has_one() -> None:
    def selector(only_node: str) -> object:
        body = NodePlaces("abc", only_node=only_node).body(manifests.deployment())
        return body["spec"]["template"]["spec"].get("nodeSelector")

    assert selector("") is None
    assert selector("node-0") == {"kubernetes.io/hostname": "node-0"}
