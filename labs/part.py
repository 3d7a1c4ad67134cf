"""Which part of a lab a test run plays. It follows from the commit: the same commit plays the same.

``LABS_PART=N`` chooses another part, also for several commits, as a bisect needs it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from claimctl import __version__

VARIABLE = "LABS_PART"
ROOT = Path(__file__).parents[1]
_PARTS = 1_000_000


def part(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> int:
    """The number that is given, else one that the commit yields.

    Args:
        root: the folder of the project. Where it is no checkout, the version stands for the commit.
    """
    if given := environment.get(VARIABLE):
        return int(given)
    source = _commit(root) or __version__
    return int(sha256(source.encode()).hexdigest(), 16) % _PARTS


def again(number: int) -> str:
    """What a failing test says, so that its part can be played again."""
    return f"{VARIABLE}={number}"


def _commit(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    command = ("git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
