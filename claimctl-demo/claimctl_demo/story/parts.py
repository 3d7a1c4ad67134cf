"""The parts of the demonstration: on which cluster a part is played, and which steps it has."""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.options import Preset

from claimctl_demo.story.presets import PRESETS

VERSION = "1.36"
"""The Kubernetes version that is played unless another one is asked for."""
PARTS = ("hold", "native")
"""The dialects of the parts that are played unless one is asked for."""
KEP_STEPS = (
    *("shared-claim", "rolling-restart", "scale-to-zero", "mixed-list"),
    *("downgrade", "downgrade-refused"),
)
"""What KEP-5194 adds. The other steps are the same in every dialect."""
VERSIONS = {"native": (VERSION,), "podgroup": (VERSION, "1.37"), "hold": ("1.34", VERSION)}
"""The versions that a dialect plays differently on."""

_HEADINGS = {
    "hold": "Kubernetes {version} as it is (mode hold)",
    "podgroup": "Kubernetes {version} with PodGroups for claims, which are alpha and off by "
    "default (mode podgroup)",
    "native": "KEP-5194 as its text has it: spec.reservedFor (mode native). No released "
    "Kubernetes has it",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One story on one cluster."""

    dialect: str
    version: str
    only: tuple[str, ...] = ()
    """The steps to play; empty: all steps of the dialect."""
    skipped: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        return _HEADINGS[self.dialect].format(version=self.version)

    @property
    def preset(self) -> Preset:
        return PRESETS[self.dialect]

    @property
    def numbers(self) -> tuple[int, int]:
        """The version as numbers."""
        major, minor = map(int, self.version.split("."))
        return major, minor

    def plays(self, step: str) -> bool:
        return step not in self.skipped and (not self.only or step in self.only)


def parts_to_play(dialect: str | None, version: str | None) -> tuple[Part, ...]:
    """The parts of one run.

    Args:
        dialect: the dialect that was asked for. None: today's Kubernetes, then KEP-5194.
        version: the Kubernetes version that was asked for.
    """
    if dialect is not None:
        return tuple(Part(dialect, each) for each in ((version,) if version else VERSIONS[dialect]))
    chosen = version or VERSION
    today = Part(PARTS[0], chosen, skipped=("more-than-256",))
    return today, Part(PARTS[1], chosen, only=KEP_STEPS)
