"""Every reachable state within bounds, breadth first; then whether all fair runs end well.

A run is fair when a step that stays possible is taken some time. So it ends in a set of states
that fair steps do not leave: such a set has to be one quiet state, and the right one. Claimctl's
steps alone must never go round in a circle (two claimctls may contradict each other for as long as
one sees less than the other).
"""

from __future__ import annotations

import gc
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from labs.model.components import components
from labs.model.promises import wrong_at_rest
from labs.model.space import FAIR, OURS, Model, Space
from labs.model.state import ModelPhase, ModelPod, There, World


@dataclass(frozen=True)
class Violation:
    """What went wrong, and the shortest way there."""

    what: str
    trace: tuple[str, ...]


@dataclass
class Found:
    """What a search has seen."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    decisions: int = 0
    resting: int = 0
    """Quiet states in which runs may end."""
    violations: list[Violation] = field(default_factory=list)
    window: dict[str, int] = field(default_factory=dict)
    """What happens where the scheduler is slower than the settle time and the binding time."""
    complete: bool = True


class Search:
    def __init__(self, model: Model, *, most: int = 20_000_000, enough: int = 1) -> None:
        self.model = model
        self._space = Space(model)
        self._most = most
        self._enough = enough
        self._numbers: dict[int, int] = {}
        self._states: list[int] = []
        self._parents = array("q")
        self._edges = array("q")
        self._offsets = array("q", [0])
        self.found = Found()

    def run(self) -> Found:
        """Search all there is. Nothing made here is ever dropped, so nothing needs collecting."""
        gc.disable()
        try:
            return self._run()
        finally:
            gc.enable()

    def _run(self) -> Found:
        self._visit(self._space.canonical(self._space.start()), -1)
        expanded = 0
        while expanded < len(self._states) and not self._has_enough():
            if len(self._states) > self._most:
                self.found.complete = False
                break
            self._expand(expanded)
            expanded += 1
        result = self.found
        result.states, result.transitions = len(self._states), len(self._edges)
        result.decisions = len(self.model.claimctl.judge)
        if result.complete and not self._has_enough() and not self.model.bounds.beyond:
            self._check_ends()
        return result

    def _has_enough(self) -> bool:
        return len(self.found.violations) >= self._enough

    def _visit(self, state: int, parent: int) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
            self._parents.append(parent)
        return number

    def _expand(self, number: int) -> None:
        state = self._states[number]
        canonical, add = self._space.canonical, self._edges.append
        for move, parts in self._space.moves(self._space.unpacked(state)):
            after = canonical(parts)
            if after == state:
                continue
            if move.broken and self._is_known(move.broken):
                continue
            add(self._visit(after, number) << 2 | move.kind)
            if move.broken:
                self._report(move.broken, [*self._path(number), after])
                if self._has_enough():
                    break
        self._offsets.append(len(self._edges))

    def _is_known(self, broken: str) -> bool:
        """Beyond those times pods may be bound too late: counted, and not followed."""
        if not self.model.bounds.beyond:
            return False
        what = re.sub(r"\bp\d+\b", "a pod", broken)
        self.found.window[what] = self.found.window.get(what, 0) + 1
        return True

    # traces

    def _path(self, number: int) -> list[int]:
        path = []
        while number >= 0:
            path.append(self._states[number])
            number = self._parents[number]
        return path[::-1]

    def _report(self, what: str, path: list[int]) -> None:
        self.found.violations.append(Violation(what, tuple(self._told(path))))

    def _told(self, path: Iterable[int]) -> Iterator[str]:
        """Replayed with the names of pods and processes kept."""
        parts = self._space.start()
        for target in list(path)[1:]:
            text, parts = next(
                (line, after)
                for line, after in self._space.told(parts)
                if self._space.canonical(after) == target and after != parts
            )
            yield text

    # liveness

    def _targets(self, number: int, least: int) -> Iterator[int]:
        for at in range(self._offsets[number], self._offsets[number + 1]):
            if self._edges[at] & 3 >= least:
                yield self._edges[at] >> 2

    def _check_ends(self) -> None:
        of = components(len(self._states), lambda number: self._targets(number, FAIR))
        members: dict[int, list[int]] = {}
        leaves: set[int] = set()
        for number, component in enumerate(of):
            members.setdefault(component, []).append(number)
            if any(of[target] != component for target in self._targets(number, FAIR)):
                leaves.add(component)
        for component, numbers in members.items():
            if component not in leaves and not self._has_enough():
                self._check_end(numbers)
        if self.model.bounds.processes == 1 and not self.model.bounds.forced:
            self._check_circles()

    def _check_end(self, numbers: list[int]) -> None:
        first = self._states[min(numbers)]
        if len(numbers) > 1:
            if not self._upstream(numbers):
                self._report(f"{len(numbers)} states go round for ever", self._circle(numbers))
            return
        self.found.resting += 1
        wrong = wrong_at_rest(self._world(first), self.model.dialect)
        if wrong and not self._has_enough():
            self._report(f"at rest: {wrong}", self._path(min(numbers)))

    def _circle(self, numbers: list[int]) -> list[int]:
        """The way into a circle, and a few steps of it."""
        path, inside, at = self._path(min(numbers)), set(numbers), min(numbers)
        for _ in range(min(len(numbers), 8)):
            at = next(target for target in self._targets(at, FAIR) if target in inside)
            path.append(self._states[at])
        return path

    def _upstream(self, numbers: list[int]) -> bool:
        """KCM's own loop on a finished pod, where no reservation is there to stop it, or nothing
        to hold the claim for, or where a tombstone would keep another pod from starting."""
        worlds = (self._world(self._states[number]) for number in numbers)
        return all(
            world.reservation.there == There.GONE
            or (
                self.model.dialect.late
                and ModelPod.DONE in world.pods
                and ModelPod.BOUND in world.pods
            )
            or (world.workload.phase != ModelPhase.ACTIVE and not world.claim.holders)
            for world in worlds
        )

    def _world(self, state: int) -> World:
        return self._space.worlds[self._space.unpacked(state)[0]]

    def _check_circles(self) -> None:
        of = components(len(self._states), lambda number: self._targets(number, OURS))
        if len(set(of)) == len(of) or self._has_enough():
            return
        sizes: dict[int, list[int]] = {}
        for number, component in enumerate(of):
            sizes.setdefault(component, []).append(number)
        circle = next(numbers for numbers in sizes.values() if len(numbers) > 1)
        self._report("claimctl alone goes round in a circle", self._circle(circle))
