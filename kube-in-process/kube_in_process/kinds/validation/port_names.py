"""The rules for names of ports."""

from __future__ import annotations

import re


def port_name(name: str) -> list[str]:
    """The errors of an IANA service name."""
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not re.fullmatch(r"[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems
