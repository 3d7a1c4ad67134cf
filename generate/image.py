"""Print what the controller's image needs: ``python -m generate.image``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements() -> list[str]:
    """The dependencies of the package, without those that ``pyproject.toml`` leaves out."""
    document = tomllib.loads(PYPROJECT.read_text())
    without = document["tool"]["claimctl"]["image"]["without"]
    needed: list[str] = document["project"]["dependencies"]
    return [each for each in needed if Requirement(each).name not in without]


if __name__ == "__main__":
    print(*requirements(), sep="\n")
