"""Compare resourceVersions."""

from __future__ import annotations


def reaches(seen: str, wanted: str) -> bool:
    """Whether ``seen`` is the same as ``wanted``, or later.

    resourceVersions are decimal numbers that grow with each write (KEP-5504, and all earlier
    releases). Other strings can only be compared for equality.
    """
    if seen.isdecimal() and wanted.isdecimal():
        return int(seen) >= int(wanted)
    return seen == wanted
