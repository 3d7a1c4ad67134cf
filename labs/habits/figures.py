"""What is counted while a cell is played, and when one count is worse than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

SLACK_SECONDS = 8.0
"""A wait counts as longer only from so many seconds on: claimctl waits before it gives a device
up."""
RETRY_SPREAD = 30.0
"""So differently long a kubelet waits by chance until it tries again after a refusal."""


@dataclass
class Figures:
    """The counts of one play of a cell.

    Attributes:
        wanted: how many pods the workload was to get, one after the other.
        ran: how many of them ran.
        refused: prepares and containers that were refused.
        lost: how often the claim lost a device that was in order, while its workload was there.
        broken: pods that started on a device that its driver does not offer, or declares broken.
        in_use: how often the claim was deallocated while the driver had it prepared.
        forgotten: claims that the driver has set up and does not know any more.
        left: claims that are still allocated long after the end of the workload.
        waited: seconds until the pods ran, all waits together.
        accused: what the witnesses say against claimctl.
    """

    wanted: int = 0
    ran: int = 0
    refused: int = 0
    lost: int = 0
    broken: int = 0
    in_use: int = 0
    forgotten: int = 0
    left: int = 0
    waited: float = 0.0
    accused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = {
            "refused": self.refused,
            "lost": self.lost,
            "on a broken device": self.broken,
            "freed in use": self.in_use,
            "forgotten": self.forgotten,
            "left allocated": self.left,
        }
        parts = [f"{self.ran} of {self.wanted} ran"]
        parts += [f"{count} {what}" for what, count in said.items() if count]
        return f"{', '.join(parts)}, {self.waited:.0f} s{' !' if self.accused else ''}"


BAD = ("refused", "broken", "forgotten", "left")
"""The figures of which more is worse."""
NEVER = ("lost", "in_use")
"""The figures that are 0 with claimctl, whatever they are without it. It promises that."""


def worse(with_claimctl: Figures, without: Figures) -> Iterator[tuple[str, float]]:
    """The figures that are worse with claimctl, each with by how much."""
    ours, theirs = asdict(with_claimctl), asdict(without)
    if theirs["ran"] > ours["ran"]:
        yield "ran", theirs["ran"] - ours["ran"]
    yield from ((name, ours[name] - theirs[name]) for name in BAD if ours[name] > theirs[name])
    yield from ((name, ours[name]) for name in NEVER if ours[name])
    longer = with_claimctl.waited - without.waited
    if longer > SLACK_SECONDS + RETRY_SPREAD * min(with_claimctl.refused, without.refused):
        yield "waited", longer
    if with_claimctl.accused:
        yield "accused", len(with_claimctl.accused)


def beyond(found: Mapping[str, float], allowed: Mapping[str, float]) -> dict[str, float]:
    """The figures that are worse by more than is allowed."""
    return {name: by for name, by in found.items() if by > allowed.get(name, 0.0)}
