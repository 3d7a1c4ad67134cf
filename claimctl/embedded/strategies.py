"""Which strategy each built-in kind has."""

from __future__ import annotations

from claimctl.embedded.strategy import Strategies


def builtin_strategies() -> Strategies:
    return Strategies()
