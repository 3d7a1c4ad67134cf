"""A folder of programs is looked at before anything is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kube_in_process.real.servers.programs import (
    ALL,
    API_SERVER,
    ETCD,
    SCHEDULER,
    CannotStart,
    find_programs,
    folder_of,
    main,
    present,
)

from kube_in_process_tests.real import scripts
from kube_in_process_tests.real.scripts import write


def test_a_folder_with_all_programs_has_their_version(tmp_path: Path) -> None:
    programs = find_programs(scripts.folder_of(tmp_path))
    assert (programs.version, programs.text) == ((1, 36), "v1.36.2")
    assert programs.path(ETCD) == str(tmp_path / "etcd")


def test_an_etcd_that_refuses_the_flag_still_runs_on_this_machine(tmp_path: Path) -> None:
    scripts.folder_of(tmp_path)
    (tmp_path / ETCD).write_text("#!/bin/sh\necho unknown flag >&2\nexit 2\n")
    assert find_programs(tmp_path).version == (1, 36)


@pytest.mark.parametrize(
    "said", ["Kubernetes v1.32.13", "Kubernetes v1.36.2-vendor.1", "Kubernetes v1.40.0-rc.0"]
)
def test_versions_of_vendors_and_releases_are_read(tmp_path: Path, said: str) -> None:
    programs = find_programs(scripts.folder_of(tmp_path, version=said))
    assert f"Kubernetes {programs.text}" == said


def refusal(folder: Path) -> str:
    with pytest.raises(CannotStart) as refused:
        find_programs(folder)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nothing").startswith(f"{tmp_path}/nothing: no such folder")


@pytest.mark.parametrize("name", ALL)
def test_a_missing_program_is_named(tmp_path: Path, name: str) -> None:
    scripts.folder_of(tmp_path)
    (tmp_path / name).unlink()
    assert refusal(tmp_path).startswith(f"{tmp_path}/{name} is missing")
    assert present(tmp_path) == tuple(program for program in ALL if program != name)


@pytest.mark.parametrize("name", ALL)
def test_a_program_that_is_not_executable_is_named(tmp_path: Path, name: str) -> None:
    scripts.folder_of(tmp_path)
    (tmp_path / name).chmod(0o644)
    assert refusal(tmp_path) == (
        f"{tmp_path}/{name} is not executable; try: chmod +x {tmp_path}/{name}"
    )


@pytest.mark.parametrize("name", ALL)
def test_a_program_for_another_machine_is_named(tmp_path: Path, name: str) -> None:
    scripts.folder_of(tmp_path)
    # an ELF header without a machine that anybody has
    (tmp_path / name).write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    assert refusal(tmp_path).startswith(f"{tmp_path}/{name} does not run on this machine (")


def test_programs_of_two_versions_are_refused(tmp_path: Path) -> None:
    scripts.folder_of(tmp_path)
    write(tmp_path, SCHEDULER, version="Kubernetes v1.34.9")
    assert refusal(tmp_path) == (
        f"{tmp_path}/kube-scheduler is v1.34.9, but kube-apiserver is v1.36.2: "
        "the programs of a folder must be of one version"
    )


def test_a_version_without_dra_is_refused(tmp_path: Path) -> None:
    scripts.folder_of(tmp_path, version="Kubernetes v1.28.4")
    assert refusal(tmp_path).endswith("is v1.28.4; 1.32 or newer is needed")


def test_a_program_that_is_something_else_is_refused(tmp_path: Path) -> None:
    scripts.folder_of(tmp_path)
    write(tmp_path, API_SERVER, version="GNU bash 5")
    assert refusal(tmp_path) == (
        f"{tmp_path}/kube-apiserver --version says 'GNU bash 5', not 'Kubernetes v1...'"
    )


def test_a_version_is_taken_from_the_folder_that_the_variable_names(tmp_path: Path) -> None:
    (tmp_path / "1.34").mkdir()
    assert folder_of("1.34", {"KUBEBUILDER_ASSETS": str(tmp_path)}) == tmp_path / "1.34"
    assert folder_of("1.36", {"KUBEBUILDER_ASSETS": str(tmp_path)}) is None


def test_a_folder_of_one_version_is_that_version(tmp_path: Path) -> None:
    environment = {"KUBEBUILDER_ASSETS": str(scripts.folder_of(tmp_path))}
    assert folder_of("1.36", environment) == tmp_path
    assert folder_of("1.34", environment) is None


def test_without_the_variable_the_newest_in_the_store_of_setup_envtest_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    store = tmp_path / "kubebuilder-envtest" / "k8s"
    for name in ("1.36.9-linux-amd64", "1.36.10-linux-amd64", "1.37.0-linux-amd64"):
        (store / name).mkdir(parents=True)
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert folder_of("1.36", environment) == store / "1.36.10-linux-amd64"
    assert folder_of("1.35", environment) is None


def test_the_program_prints_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "1.36").mkdir()
    scripts.folder_of(tmp_path / "1.36")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert (main(["1.36"]), capsys.readouterr().out) == (0, f"{tmp_path}/1.36\n")
    assert (main(["1.30"]), main([]), capsys.readouterr().out) == (1, 1, "")


def test_the_program_prints_no_folder_that_has_only_a_part_of_a_control_plane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "kubebuilder-envtest/k8s/1.36.2-linux-amd64"
    stored.mkdir(parents=True)
    for name in (ETCD, API_SERVER):
        write(stored, name)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert (main(["1.36"]), capsys.readouterr().out) == (1, "")
