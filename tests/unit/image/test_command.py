"""``python -m image``: bad input is one line, before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from image.__main__ import main


@pytest.mark.parametrize("name", ["claimctl", "Claimctl:1", "claimctl:", "a b:1"])
def test_a_name_without_a_tag_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--name", name]) == 2
    assert capsys.readouterr().err == f"error: NAME={name}: expected REPOSITORY:TAG\n"


def test_a_key_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--key", str(tmp_path / "key"), "--dist", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: KEY={tmp_path}/key: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []
