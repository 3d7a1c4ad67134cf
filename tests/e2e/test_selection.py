"""The selection of scenarios for real clusters, and the page that lists the skipped ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from kube_in_process.options import Preset

from tests.e2e.places import ScenarioPlaces
from tests.e2e.playground import ASSETS
from tests.e2e.real import FOLDERS, KUBECONFIG
from tests.e2e.real_cluster import RealCluster
from tests.e2e.skipped import SKIPPED, Skipped, reason_for

PAGE = Path(__file__).parent / "README.md"
ON_134 = RealCluster("", (1, 34), Preset.PLAIN)


def shown(each: Skipped) -> str:
    major, minor = each.before
    return each.reason if not major else f"before {major}.{minor}: {each.reason}"


def test_the_page_lists_what_is_skipped() -> None:
    _, _, rest = PAGE.read_text().partition("| scenario | reason |\n| --- | --- |\n")
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", rest, re.MULTILINE)
    assert rows == [(test, shown(each)) for each in SKIPPED for test in each.tests]


def test_what_is_skipped_exists() -> None:
    defined = {
        name
        for folder in FOLDERS
        for path in folder.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    listed = {test.partition("[")[0] for each in SKIPPED for test in each.tests}
    assert listed <= defined


def test_one_of_several_parameters_can_be_skipped() -> None:
    name = "tests/e2e/test_controller_reallocation.py::test_pods_whose_devices_cannot_be_reached"
    assert reason_for(f"{name}_get_others[hold 1.34-lost]", ON_134).startswith("the node lifecycle")
    assert reason_for(f"{name}_get_others[hold 1.34-tainted]", ON_134) == ""
    name = "test_the_check_names_the_habit_of_a_driver_and_leaves_nothing"
    assert reason_for(f"{name}[refuses-a-second-pod]", ON_134)
    assert not reason_for(f"{name}[wants-one-pod]", ON_134)


def test_a_manifest_gets_the_names_of_its_scenario() -> None:
    places = ScenarioPlaces("x1", flat_requests=True)
    body = {
        "kind": "ResourceClaim",
        "metadata": {"name": "slice", "namespace": "team"},
        "spec": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}],
    }
    assert places.body(body) == {
        "kind": "ResourceClaim",
        "metadata": {"name": "slice", "namespace": "team-x1"},
        "spec": [{"name": "gpu", "deviceClassName": "x1.gpu.example.com"}],
    }
    assert places.path("/api/v1/namespaces/team/pods") == "/api/v1/namespaces/team-x1/pods"
    assert places.path("/api/v1/namespaces/kube-system") == "/api/v1/namespaces/kube-system"


@pytest.mark.parametrize(
    ("told", "code", "text"),
    [
        ({}, 2, f"error: set {ASSETS} to the folder of etcd, "),
        ({ASSETS: "/nosuch"}, 1, "error: /nosuch: no such folder"),
        ({KUBECONFIG: "/nosuch"}, 1, "error: kubeconfig /nosuch: "),
    ],
)
def test_what_is_missing_is_named_in_one_line(told: dict[str, str], code: int, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.real"],
        env={"PATH": "/usr/bin:/bin", **told},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1)
    assert done.stderr.startswith(text)
