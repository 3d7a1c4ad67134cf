"""The pins of the lock files."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, str]:
    """The versions in a lock file, by the names of the packages."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in lines}
