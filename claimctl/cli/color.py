"""Whether output has colors: by ``--color``, NO_COLOR and the terminal. A word says the same."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TextIO

VARIABLE = "CLAIMCTL_COLOR"


class When(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def in_color(out: TextIO) -> bool:
    """Whether to write escape sequences to ``out``. ``auto`` is for terminals that can show them,
    unless NO_COLOR (https://no-color.org) is set."""
    match os.environ.get(VARIABLE, When.AUTO):
        case When.ALWAYS:
            return True
        case When.NEVER:
            return False
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
