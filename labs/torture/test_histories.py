"""Saving and comparing histories: equal without a change, and different after one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from labs.torture import histories


def test_a_run_that_does_the_same_is_equal_and_another_one_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = {"SEED=1": ["1 a", "2 b", "3 c"], "life": ["1 a"]}
    monkeypatch.setattr(histories, "_play_all", lambda runs: [(run, played[run]) for run in runs])
    monkeypatch.setattr(histories, "references", lambda: [type("R", (), {"name": "life"})()])
    file = tmp_path / "before"
    assert histories.save(file, [1]) == 0
    assert histories.compare(file) == 0
    played["SEED=1"] = ["1 a", "2 B", "3 c"]
    assert histories.compare(file) == 1
    out = capsys.readouterr().out
    assert "SEED=1\n    1 a\n  - 2 b\n  + 2 B\n" in out
    assert "2 runs compared, 1 different" in out


def test_a_fingerprint_tells_of_everything_but_texts() -> None:
    first, again = histories.fingerprints_of("SEED=7"), histories.fingerprints_of("SEED=7")
    assert first == again
    assert len(set(first)) == len(first) > 50


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"nothing of the kind", id="not compressed"),
        # gzip writes the time into the file, so the test names would differ between processes.
        pytest.param(gzip.compress(b"[1]\n"), id="not a history"),
    ],
)
def test_a_file_that_holds_no_histories_is_named(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd"
    file.write_bytes(content)
    assert histories.main(["--compare", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_a_run_that_is_no_more_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old"
    lines = json.dumps({"run": "no such run", "revisions": []})
    file.write_bytes(gzip.compress(lines.encode()))
    assert histories.main(["--compare", str(file)]) == 2
    assert "no such run" in capsys.readouterr().err
