"""The lock of the Debian packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from image import debian_lock
from image.debian_lock import DebianPackage
from image.problem import ImageProblem

DIGEST = 64 * "0"


def test_it_locks_the_packages_that_the_project_names() -> None:
    locked = [each.name for each in debian_lock.read()]
    assert locked == sorted(debian_lock.read_names())


def test_a_line_is_read_as_it_is_written(tmp_path: Path) -> None:
    package = DebianPackage("zlib1g", "1:1.2.13.dfsg-1", "amd64", DIGEST)
    (tmp_path / "lock").write_text(f"{debian_lock.HEAD}{package}\n")
    assert debian_lock.read(tmp_path / "lock") == [package]
    assert package.file == "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb"


def test_the_index_of_packages_gives_what_is_locked() -> None:
    index = f"Package: zlib1g\nArchitecture: amd64\nVersion: 1:1.2\nSHA256: {DIGEST}\nSize: 1\n"
    assert debian_lock.parse_index("zlib1g", index) == DebianPackage(
        "zlib1g", "1:1.2", "amd64", DIGEST
    )


@pytest.mark.parametrize(
    "line", ["zlib1g", "zlib1g=1 amd64 sha256:12", f"zlib1g=1 arm64 sha256:{DIGEST}"]
)
def test_a_line_that_locks_nothing_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "lock").write_text(f"# head\n{line}\n")
    with pytest.raises(ImageProblem) as refused:
        debian_lock.read(tmp_path / "lock")
    message = "lock, line 2: expected NAME=VERSION ARCHITECTURE sha256:DIGEST"
    assert (str(refused.value), refused.value.code) == (message, 2)


def test_a_missing_lock_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageProblem, match="lock is missing: make image-lock writes it"):
        debian_lock.read(tmp_path / "lock")
