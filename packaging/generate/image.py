"""Print what the controller's image needs: ``python -m generate.image``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def dependencies() -> list[str]:
    """The dependencies of the package."""
    needed: list[str] = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    return needed


def left_out() -> frozenset[str]:
    """The names of the packages that ``pyproject.toml`` leaves out of the image."""
    document = tomllib.loads(PYPROJECT.read_text())
    return frozenset(document["tool"]["claimctl"]["image"]["without"])


def requirements() -> list[str]:
    """The dependencies that the image has."""
    return [each for each in dependencies() if Requirement(each).name not in left_out()]


if __name__ == "__main__":
    print(*requirements(), sep="\n")
