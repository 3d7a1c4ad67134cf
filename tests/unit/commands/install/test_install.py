"""``claimctl install``: input that is refused before a cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--image is missing: name the image of the controller"),
        (["--image", "i:1", "-o", "yaml"], "--output yaml: only with --dry-run"),
        (["--image", "i:1", "--dry-run", "--wait"], "--wait and --dry-run exclude each other"),
        (["--image", "i:1", "--timeout", "0"], "--timeout"),
        (["--component", "nosuch"], "--component: 'nosuch' is not one of"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["install", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_crds_alone_need_no_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = str(tmp_path / "nosuch")
    assert run(["install", "--component", "crds", "--kubeconfig", nowhere]) == 2
    assert "No such file" in capsys.readouterr().err


def test_rescheduling_needs_the_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, profiles: []}")
    assert run(["install", "--component", "crds", "--reschedule", str(file)]) == 2
    assert "error: --image is missing" in capsys.readouterr().err
