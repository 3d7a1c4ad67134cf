"""krew's manifest and its archive, as far as they can be tried without krew."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from claimctl import __version__
from release.krew import ARCHIVE, MANIFEST, main

WHEEL = f"claimctl-{__version__}-py3-none-any.whl"
URL = "https://example.com/kubectl-claim.tar.gz"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("krew")
    assert main(["--url", URL, "--dist", str(folder)]) == 0
    return folder


def test_the_manifest_names_the_archive_by_its_hash(dist: Path) -> None:
    found = yaml.safe_load((dist / MANIFEST).read_text())
    assert (found["metadata"]["name"], found["spec"]["version"]) == ("claim", f"v{__version__}")
    assert len(found["spec"]["shortDescription"]) <= 50
    [platform] = found["spec"]["platforms"]
    digest = hashlib.sha256((dist / ARCHIVE).read_bytes()).hexdigest()
    assert (platform["uri"], platform["sha256"]) == (URL, digest)
    with tarfile.open(dist / ARCHIVE) as files:
        assert files.getnames() == [platform["bin"], WHEEL, "LICENSE"]


def test_another_build_gives_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    main(["--url", URL, "--dist", str(tmp_path)])
    assert (tmp_path / ARCHIVE).read_bytes() == (dist / ARCHIVE).read_bytes()


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("claimctl", "get -A\n"),
        ("uvx", "--from {wheel} kubectl-claim get -A\n"),
        ("pipx", "run --spec {wheel} kubectl-claim get -A\n"),
    ],
)
def test_the_plugin_runs_claimctl_with_what_there_is(
    tool: str, told: str, dist: Path, tmp_path: Path
) -> None:
    program = tmp_path / tool
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    assert played(dist, tmp_path) == (0, told.format(wheel=tmp_path / "store" / WHEEL), "")


def test_without_anything_to_run_it_says_what_it_needs(dist: Path, tmp_path: Path) -> None:
    code, out, err = played(dist, tmp_path)
    assert (code, out) == (1, "")
    assert err == (
        "error: kubectl claim needs uv or pipx, or claimctl itself: "
        f"pip install {tmp_path / 'store' / WHEEL}\n"
    )


def played(dist: Path, path: Path) -> tuple[int, str, str]:
    """Call the plugin as krew installs it: by a link to the folder with its files."""
    with tarfile.open(dist / ARCHIVE) as files:
        files.extractall(path / "store", filter="data")
    for tool in ("readlink", "dirname"):
        (path / tool).symlink_to(shutil.which(tool) or "")
    (path / "kubectl-claim").symlink_to(path / "store" / "kubectl-claim")
    done = subprocess.run(
        ["/bin/sh", str(path / "kubectl-claim"), "get", "-A"],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
