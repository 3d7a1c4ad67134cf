"""The table at the end of a run, and its faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube_in_process.containers import FOREVER
from kube_in_process.device_witness import OF_KUBERNETES, DeviceFault

from labs import frame
from labs.torture_nodes.killing import KINDS

_NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureNodesOptions:
    """The flags. Without ``hold`` the cluster is alone; ``guard`` refuses force deletions."""

    version: str
    pod_groups: bool
    keep: str
    budget: float
    seed: int
    users: int
    hold: bool
    guard: bool
    kills: str

    @property
    def killed(self) -> tuple[str, ...]:
        """The kinds to kill."""
        return tuple(each for each in self.kills.split(",") if each != _NONE)

    def unknown_kills(self) -> str:
        """The first kind that does not exist, or ''."""
        return next((each for each in self.killed if each not in KINDS), "")


@dataclass(slots=True)
class NodesTally:
    """What was played, and what was found."""

    claims: int = 0
    held: int = 0
    """Claims that were not free soon after the end."""
    actions: Mapping[str, int] = field(default_factory=dict)
    kills: Mapping[str, int] = field(default_factory=dict)
    faults: Sequence[DeviceFault] = ()
    bad: Sequence[str] = ()
    """Crashes of claimctl."""
    interrupted: bool = False

    @property
    def lost(self) -> list[DeviceFault]:
        """The faults that a claim's owner can prevent: not those of Kubernetes alone."""
        return [each for each in self.faults if each.rule not in OF_KUBERNETES]


def report(options: TortureNodesOptions, version: str, tally: NodesTally) -> list[str]:
    """The lines to print: the figures, then what is wrong."""
    lost = tally.lost
    ended = [each.seconds for each in lost if each.seconds < FOREVER]
    open_ = len(lost) - len(ended)
    longest = f"{max(ended, default=0.0):.1f} s"
    who = "with claimctl" if options.hold else "the cluster alone"
    who += " and pod-deletion" if options.guard else ""
    figures = {
        f"Kubernetes {version}": f"{who}, SEED={options.seed} BUDGET={options.budget:g}",
        "claims": f"{tally.claims}, of which {tally.held} were still held at the end",
        "actions": _counted(tally.actions),
        "kills": _counted(tally.kills),
        "faults": _counted(Counter(each.rule for each in lost)),
        **{
            whose: f"{sum(each.rule == rule for each in tally.faults)} {rule}"
            for rule, whose in OF_KUBERNETES.items()
        },
        "longest": f"{longest}; {open_} not ended" if open_ else longest,
    }
    faults = [f"fault: {each}" for each in tally.faults]
    return [frame.figures(figures.items()), *faults, *(f"bad: {each}" for each in tally.bad)]


def _counted(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{sum(counts.values())} ({named})" if named else "0"
