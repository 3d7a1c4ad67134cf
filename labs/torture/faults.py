"""Random faults between a controller and the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kube_in_process.storage.requests import Fault, FaultPoint

from tests.e2e.harness import CONTROLLER_USER

Make = Callable[[Random], Fault]

ANY: dict[str, Make] = {
    "429 Retry-After": lambda rng: Fault(status=429, retry_after=rng.choice([1, 2, 5])),
    "500": lambda rng: Fault(status=500),
    "503": lambda rng: Fault(status=503),
    "503 Retry-After": lambda rng: Fault(status=503, retry_after=1),
    "refused": lambda rng: Fault(drop=True),
    "slow": lambda rng: Fault(delay=rng.choice([0.05, 0.7, 3.0])),
    "403": lambda rng: Fault(status=403, reason="Forbidden"),
}
READS: dict[str, Make] = {
    "410": lambda rng: Fault(status=410, reason="Expired"),
}
WATCHES: dict[str, Make] = {
    **READS,
    "watch cut": lambda rng: Fault(cut_after=rng.choice([0, 1, 3])),
}
WRITES: dict[str, Make] = {
    "409": lambda rng: Fault(status=409, reason="Conflict"),
    "422": lambda rng: Fault(status=422, reason="Invalid"),
    "accepted, answer lost": lambda rng: Fault(drop=True, after_write=True),
    "accepted, never answered": lambda rng: Fault(hang=True),
}
SPECIFIC = {"watch": WATCHES, "list": READS, "get": {}}


@dataclass
class Faults:
    """A fault hook. ``rate`` is the share of the controllers' requests that fail."""

    rng: Random
    rate: float
    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, point: FaultPoint) -> Fault | None:
        if point.user != CONTROLLER_USER or self.rng.random() >= self.rate:
            return None
        kinds = {**ANY, **SPECIFIC.get(point.verb, WRITES)}
        name = self.rng.choice(list(kinds))
        self.counts[name] += 1
        return kinds[name](self.rng)

    def on_components(self, point: FaultPoint) -> Fault | None:
        """Conflicts and lost answers for the cluster's own components."""
        if point.verb in ("get", "list", "watch") or self.rng.random() >= self.rate / 4:
            return None
        name = self.rng.choice(["409", "500", "accepted, answer lost"])
        self.counts[f"component {name}"] += 1
        return WRITES.get(name, ANY.get(name, ANY["500"]))(self.rng)
