"""The processes that stand for containers have only the packages of the image."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chart.containers import without_packages


@pytest.mark.parametrize(
    ("module", "there"),
    [("aiohttp", True), ("pydantic", True), ("cel", True), ("kubernetes", False)],
)
def test_what_the_image_does_not_have_cannot_be_imported(
    module: str, there: bool, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        env={"PYTHONPATH": str(without_packages(tmp_path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode == 0) is there, done.stderr
    assert there or f"No module named '{module}'" in done.stderr
