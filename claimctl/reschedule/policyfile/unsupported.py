"""What a policy file asks for and claimctl does not have: refused by name, or skipped."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from claimctl.reschedule.policyfile.problems import Path, PolicyError, at
from claimctl.reschedule.policyfile.v1alpha2 import ARGS

FLAG = "--skip-unsupported"


@dataclass(slots=True)
class Unsupported:
    """Collects the parts; ``skip`` says whether they are left out or refused."""

    skip: bool
    lines: dict[str, None] = field(default_factory=dict)

    plugins: set[str] = field(default_factory=set)

    def plugin(self, path: Path, name: str) -> None:
        """Note a plugin once, wherever else the file names it."""
        if name in self.plugins:
            return
        self.plugins.add(name)
        near = difflib.get_close_matches(name, ARGS, 1, cutoff=0.85)
        hint = f": is {near[0]} meant?" if near else ""
        self.lines[at(path, f"claimctl has no plugin {name}{hint}")] = None

    def add(self, path: Path, why: str) -> None:
        self.lines[at(path, why)] = None

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(self.lines) if self.skip else ()

    def refuse(self) -> None:
        """Raise PolicyError unless the parts may be left out."""
        if self.lines and not self.skip:
            raise PolicyError(*(f"{line} ({FLAG} leaves it out)" for line in self.lines))
