"""What ``claimctl install --dry-run`` prints is what the repository's files and kustomize say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.cli.main import run
from claimctl.commands.install import components
from claimctl.commands.install.components import (
    BASE,
    FOLDERS,
    Choice,
    chosen,
    documents,
)
from claimctl.commands.install.rescheduling import Rescheduling
from claimctl.yaml_text import dumped

ROOT = Path(__file__).parents[4]
Json = dict[str, Any]


def places(found: list[Json]) -> list[tuple[str, str, str]]:
    return [
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
        for each in found
    ]


@pytest.mark.parametrize("component", FOLDERS)
def test_a_component_has_every_document_of_its_folder(component: str) -> None:
    files = (ROOT / FOLDERS[component]).glob("*.yaml")
    expected = [
        document
        for file in sorted(files)
        if file.name != "kustomization.yaml"
        for document in yaml.safe_load_all(file.read_text())
    ]
    assert sorted(places(documents(component))) == sorted(places(expected))
    assert expected


def test_what_others_need_comes_first() -> None:
    kinds = [each["kind"] for each in chosen(Choice())]
    assert kinds[:5] == [*["CustomResourceDefinition"] * 4, "Namespace"]
    assert kinds.index("ServiceAccount") < kinds.index("Deployment")


def test_another_namespace_and_image_reach_every_place() -> None:
    choice = Choice((*FOLDERS,), "gpus", "registry.example.com/claimctl:9")
    text = dumped(*chosen(choice))
    assert "claimctl-system" not in text
    assert "image: registry.example.com/claimctl:9" in text
    everywhere = dumped(*chosen(Choice((*FOLDERS,))))
    assert text.count("gpus") == everywhere.count("claimctl-system")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_base_is_what_kustomize_makes_of_deploy() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(ROOT / "deploy")], capture_output=True, text=True, timeout=60
    )
    rendered, ours = list(yaml.safe_load_all(done.stdout)), chosen(Choice())
    assert dict(zip(places(rendered), rendered, strict=True)) == dict(
        zip(places(ours), ours, strict=True)
    )


@pytest.mark.parametrize("component", [each for each in FOLDERS if each not in BASE])
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_takes_each_component(component: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / FOLDERS[component], tmp_path / component)
    made = yaml.safe_load((tmp_path / component / "kustomization.yaml").read_text())
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "gpus",
        "components" if made["kind"] == "Component" else "resources": [component],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    rendered = list(yaml.safe_load_all(done.stdout))
    for each in rendered:
        if each["apiVersion"].startswith("admissionregistration.k8s.io/"):
            # kustomize 5.5 takes these kinds for namespaced; the API server drops the field
            del each["metadata"]["namespace"]
    moved = chosen(Choice((component,), "gpus"))
    assert sorted(places(rendered)) == sorted(places(moved))


@pytest.mark.parametrize(("folder", "interval"), [("cronjob", ""), ("loop", "5m")])
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_rescheduler_is_what_kustomize_makes_of_deploy(folder: str, interval: str) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(ROOT / "deploy" / "rescheduler" / folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    [policy] = [each for each in documents("rescheduler") if each["kind"] == "ConfigMap"]
    wanted = Rescheduling(policy["data"]["policy.yaml"], interval=interval)
    ours = chosen(Choice((), rescheduling=wanted))
    for each in ours:
        if each["kind"] == "Deployment":
            # kustomize does not know when a policy changes
            del each["spec"]["template"]["metadata"]["annotations"]
    rendered = list(yaml.safe_load_all(done.stdout))
    assert dict(zip(places(rendered), rendered, strict=True)) == dict(
        zip(places(ours), ours, strict=True)
    )


def test_without_the_files_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(components, "files", lambda _package: tmp_path)
    monkeypatch.setattr(components, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert run(["install", "--image", "i:1", "--dry-run", "-o", "yaml"]) == 1
    assert capsys.readouterr().err == (
        "error: this installation of claimctl has no manifests: install its wheel\n"
    )
