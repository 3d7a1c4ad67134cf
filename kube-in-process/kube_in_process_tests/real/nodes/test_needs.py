"""What is missing for nodes is named in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kube_in_process.real.nodes import needs
from kube_in_process.real.servers.programs import CannotStart, Programs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has everything: root, tools, plugins, cgroups of version 1."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (*needs._TOOLS, "busybox"):
        (tools / name).write_bytes(b"\x7fELF")
        (tools / name).chmod(0o755)
    for name in needs._PLUGINS:
        (tools / name).touch()
    for name in needs._V1_CONTROLLERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "tasks").touch()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(needs, "_PLUGIN_FOLDERS", (tools,))
    monkeypatch.setattr(needs, "_CGROUPS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "find_spec", lambda name: object())
    return tmp_path


def problem(assets: Path) -> str:
    with pytest.raises(CannotStart) as caught:
        needs.find_tools(assets)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_with_everything_there_the_programs_are_looked_at(machine: Path) -> None:
    assert "no such folder" in problem(machine / "assets")


def test_cgroups_of_version_2_do(machine: Path) -> None:
    for name in needs._V1_CONTROLLERS:
        (machine / name / "tasks").unlink()
    assert "no cgroup controllers cpu, cpuacct" in problem(machine)
    (machine / "cgroup.controllers").touch()
    assert "etcd is missing" in problem(machine)


def test_a_missing_program_is_named_with_its_package(machine: Path) -> None:
    (machine / "bin" / "nft").unlink()
    assert problem(machine) == "nft is not on the PATH; install nftables"


def test_a_busybox_with_shared_libraries_does_not_do(machine: Path) -> None:
    (machine / "bin" / "busybox").write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2")
    assert "install busybox-static" in problem(machine)


def test_missing_plugins_rights_and_packages_are_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    assert "grpcio" in problem(machine)
    (machine / "bin" / "bridge").unlink()
    assert "install containernetworking-plugins" in problem(machine)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert problem(machine).startswith("nodes need root")


def test_kubelets_of_old_versions_are_refused(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Programs(machine, (1, 33), "v1.33.0")
    monkeypatch.setattr(needs, "find_programs", lambda *_: old)
    assert "1.34 or newer is needed" in problem(machine)
    fine = Programs(machine, (1, 34), "v1.34.9")
    monkeypatch.setattr(needs, "find_programs", lambda *_: fine)
    assert needs.find_tools(machine).programs is fine
