"""The pins of a lock."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name


def pins(lock: str) -> dict[str, str]:
    """The versions in the text of a lock, by the names of the packages."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", lock, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in lines}
