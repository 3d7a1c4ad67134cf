"""What the image takes of a Debian package."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from image import debian
from image.debian_lock import DebianPackage
from image.problem import ImageProblem

needs_dpkg = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed"
)
CONTROL = """\
Package: small
Version: 1:2
Architecture: amd64
Maintainer: Nobody <nobody@example.com>
Description: small
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a library, a link to it, a licence and a manual page."""
    root = tmp_path / "root"
    for path, text in {
        "DEBIAN/control": CONTROL,
        "DEBIAN/postinst": "#!/bin/sh\nexit 1\n",
        "lib/libsmall.so.1.0": "library",
        "usr/share/doc/small/copyright": "free",
        "usr/share/doc/small/changelog.gz": "new",
        "usr/share/man/man1/small.1.gz": "page",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "DEBIAN/postinst").chmod(0o755)
    (root / "lib/libsmall.so.1").symlink_to("libsmall.so.1.0")
    made = tmp_path / "small_1%3a2_amd64.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made


@needs_dpkg
def test_it_takes_files_and_licences_and_runs_no_script(package: Path) -> None:
    tree = debian.unpack(package)
    assert sorted(tree) == [
        "usr/lib/libsmall.so.1",
        "usr/lib/libsmall.so.1.0",
        "usr/share/doc/small/copyright",
        "var/lib/dpkg/status.d/small",
    ]
    assert tree["usr/lib/libsmall.so.1"].target == "libsmall.so.1.0"
    assert tree["usr/lib/libsmall.so.1.0"].data == b"library"
    status = (tree["var/lib/dpkg/status.d/small"].data or b"").decode()
    assert "Status: install ok installed\nVersion: 1:2\n" in status


@needs_dpkg
def test_a_file_that_is_there_is_used_if_it_is_the_locked_one(package: Path) -> None:
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    locked = DebianPackage("small", "1:2", "amd64", digest)
    assert debian.fetch([locked], package.parent) == [package]
    other = DebianPackage("small", "1:2", "amd64", 64 * "0")
    with pytest.raises(ImageProblem, match="is not the file that the lock names"):
        debian.fetch([other], package.parent)
    assert not package.exists()


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageProblem) as refused:
        debian.fetch([], tmp_path)
    message = "apt-get is missing: build the image on Debian 12"
    assert (str(refused.value), refused.value.code) == (message, 2)


def test_another_architecture_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("apt-get", "dpkg-deb", "dpkg"):
        (tmp_path / tool).write_text("#!/bin/sh\necho arm64\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(ImageProblem) as refused:
        debian.fetch([], tmp_path)
    message = "this machine is arm64: the image is locked for amd64"
    assert (str(refused.value), refused.value.code) == (message, 2)


def test_a_version_that_the_archive_no_longer_has_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"dpkg": "echo amd64", "dpkg-deb": "", "apt-get": "echo E: not found >&2; exit 100"}
    for tool, answer in answers.items():
        (tmp_path / tool).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(
        ImageProblem, match="apt-get: E: not found; run apt-get update, or make image-lock"
    ):
        debian.fetch([DebianPackage("small", "1", "amd64", 64 * "0")], tmp_path)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
        ("./usr/lib/os-release", "usr/lib/os-release"),
        ("./etc/lib/x", "etc/lib/x"),
    ],
)
def test_libraries_are_below_usr(name: str, place: str) -> None:
    assert debian.locate(name) == place
