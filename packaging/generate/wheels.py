"""The wheels, the same bytes at any time and place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

EXTRAS = "CLAIMCTL_WHEEL_EXTRAS"
"""The variable for `packaging/hatch_build.py`: the folder with what only a release has."""
_TIME = "1577836800"
"""The time of all files, in seconds since 1970: a commit that changes no file changes no wheel."""


class WheelFailed(Exception):
    """hatchling builds no wheel; the message is the last line that it printed."""


def build_wheel(
    project: Path, folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Build the wheel of the project in a folder, and write it to an empty folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    ended = subprocess.run(
        [*command, str(folder.absolute())],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, **variables, "SOURCE_DATE_EPOCH": _TIME},
        check=False,
    )
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or ["no message"]
        raise WheelFailed(f"hatchling: {lines[-1]}")
    [wheel] = folder.glob("*.whl")
    return wheel
