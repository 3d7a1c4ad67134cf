"""Reads the variables that a make target passes."""

from __future__ import annotations

from collections.abc import Mapping

from claimctl_demo.real_servers.programs import Programs


class BadOption(Exception):
    """A variable has an invalid value. The text is one line."""


def gates_of(environment: Mapping[str, str]) -> bool:
    """Whether GATES asks for PodGroups. Raises BadOption unless it is 0 or 1."""
    gates = environment.get("GATES") or "0"
    if gates not in ("0", "1"):
        raise BadOption(f"GATES: {gates!r} is neither 0 nor 1")
    return gates == "1"


def check_gates(programs: Programs, *, pod_groups: bool) -> None:
    """Raise BadOption if the programs do not support PodGroups for claims."""
    if pod_groups and programs.version < (1, 36):
        raise BadOption(f"GATES=1: {programs.text} has no PodGroups for claims; use 1.36")


def number_of(
    environment: Mapping[str, str], name: str, default: float, *, least: float = 0.0
) -> float:
    """The number in a variable. Raises BadOption for other text or less than ``least``."""
    text = environment.get(name) or ""
    try:
        value = float(text) if text else default
    except ValueError:
        raise BadOption(f"{name}: {text!r} is no number") from None
    if value < least:
        raise BadOption(f"{name}: {text} is less than {least:g}")
    return value
