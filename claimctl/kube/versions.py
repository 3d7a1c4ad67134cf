"""Comparing resourceVersions."""

from __future__ import annotations


def reaches(seen: str, wanted: str) -> bool:
    """Whether one version is at least another.

    Versions are decimal numbers in the order of the writes (KEP-5504; so in every release
    before, too). One that is not can only be compared for equality.
    """
    if seen.isdecimal() and wanted.isdecimal():
        return int(seen) >= int(wanted)
    return seen == wanted
