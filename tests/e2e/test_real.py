"""The scenarios on clusters elsewhere: the launcher against fakes, and an embedded cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import fakes
from tests.e2e.real import ASSETS, KUBECONFIG, STAND_INS, CannotStart, ControlPlane, prepared
from tests.e2e.test_kubectl import serving

ONE = "test_a_deployment_is_listed_beside_its_pods"
NATIVE_ONE = "test_a_claim_that_claimctl_did_not_make_keeps_its_pods_and_says_so"
HERE = Path(__file__).parent
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in (ASSETS, KUBECONFIG, STAND_INS)}
    return {**kept, **more}


def run_e2e(chosen: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.e2e.real", "-q", "-p", "no:cacheprovider", chosen],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@needs_openssl
def test_what_an_api_server_alone_lacks_is_stood_in_for(tmp_path: Path) -> None:
    fakes.install(tmp_path, "etcd", "kube-apiserver")
    chosen = f"{HERE}/test_controller_hold.py::{ONE}[1.36]"
    done = run_e2e(chosen, **{ASSETS: str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_cluster_of_a_kubeconfig_is_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path, "--dialect", "native"):
        chosen = f"{HERE}/test_controller_native.py::{NATIVE_ONE}"
        done = run_e2e(chosen, **{KUBECONFIG: str(path)})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 passed" in done.stdout


def test_what_is_missing_is_named_in_one_line(tmp_path: Path) -> None:
    nothing, empty = run_e2e(""), run_e2e("", **{ASSETS: str(tmp_path)})
    assert (nothing.returncode, empty.returncode) == (2, 2)
    assert nothing.stderr.startswith(f"error: set {KUBECONFIG}, or {ASSETS}")
    assert empty.stderr == f"error: {ASSETS}: {tmp_path}/etcd is not there\n"


@needs_openssl
def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    fakes.install(tmp_path, "etcd")
    (tmp_path / "kube-apiserver").write_text("#!/bin/sh\necho bad flag; exit 1\n")
    (tmp_path / "kube-apiserver").chmod(0o755)
    with (
        pytest.raises(CannotStart, match=r"kube-apiserver has ended: bad flag"),
        prepared({ASSETS: str(tmp_path)}),
    ):
        pass


def test_only_what_the_folder_lacks_is_played(tmp_path: Path) -> None:
    assert ControlPlane(tmp_path, tmp_path).missing == ("kubelet", "scheduler", "controllers")
    fakes.install(tmp_path, "kube-scheduler", "kube-controller-manager")
    assert ControlPlane(tmp_path, tmp_path).missing == ("kubelet",)
