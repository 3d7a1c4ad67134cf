"""The states of a model as numbers, and the steps between them, each worked out once.

Most steps look at the world alone, or at the world and one process. So worlds and processes are
numbered, what each world and each pair of a world and a process can do is kept, and a state is the
numbers of its parts in one integer. Two states are one that differ by the names of pods or by the
order of the processes: nothing in the model depends on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

from labs.model.checkpoints import backed_up, behind
from labs.model.claimctl import Claimctl
from labs.model.cluster import Cluster, ModelStep
from labs.model.dialects import ModelDialect
from labs.model.promises import broken_in
from labs.model.server import Bounds, overtaken
from labs.model.state import (
    Left,
    ModelProcess,
    News,
    There,
    World,
    held,
    idle,
    initial,
    renamed,
    renamed_process,
    unreserved,
    watching,
)

BITS = 24
"""Of a part's number; more parts than that do not fit into memory anyway."""
MASK = (1 << BITS) - 1

MAY, FAIR, OURS = 0, 1, 2
"""Kinds of transitions: may happen, will happen, will happen and is claimctl's."""


class Move(NamedTuple):
    """A step in numbers."""

    kind: int
    world: int
    process: int
    """What becomes of the process that takes it; -1 where the cluster does."""
    effect: dict[int, int] | None
    """What becomes of the other processes; None where nothing does."""
    broken: str


class Model:
    """A dialect within bounds."""

    def __init__(self, dialect: ModelDialect, bounds: Bounds) -> None:
        self.dialect, self.bounds = dialect, bounds
        self.cluster = Cluster(dialect, bounds)
        self.claimctl = Claimctl(dialect, bounds)

    def start(self) -> World:
        bounds = self.bounds
        left = Left(bounds.crashes, bounds.actions, bounds.lost, 0, bounds.gaps)
        world = initial(bounds.pods, left)
        if self.dialect.ahead:
            world = world._replace(delisted=(0,) * bounds.pods)
        if not bounds.held:
            return world
        world = held(world, groups=self.dialect.groups, late=self.dialect.late)
        if bounds.idle:
            world = idle(world)
        if not bounds.reserved:
            world = unreserved(world)
        frees = (self.dialect.frees(world.claim, pod) for pod in range(bounds.pods))
        world = world._replace(free=tuple(0 if free else -1 for free in frees))
        return backed_up(world) if bounds.restores else world


class Space:
    def __init__(self, model: Model) -> None:
        self._model = model
        self.worlds: list[World] = []
        self.processes: list[ModelProcess] = []
        self._world_numbers: dict[World, int] = {}
        self._process_numbers: dict[ModelProcess, int] = {}
        self._cluster: dict[int, list[Move]] = {}
        self._own: dict[int, list[Move]] = {}
        self._effects: dict[tuple[object, ...], dict[int, int]] = {}
        self._broken: dict[int, str] = {}
        self._unaware: list[bool] = []
        others = range(model.bounds.pods - model.dialect.others, model.bounds.pods)
        orders = [(*order, *others) for order in permutations(range(others.start))]
        self._orders = orders if len(orders) > 1 else []
        self._best: dict[int, tuple[int, list[int]]] = {}
        self._renamed: dict[int, int] = {}

    # numbers

    def start(self) -> tuple[int, ...]:
        world = self._model.start()
        number = self._process(watching(world))
        return (self._world(world), *[number] * self._model.bounds.processes)

    def number(self, world: World, *processes: ModelProcess) -> int:
        """Of the state, or of another that is the same but for names."""
        return self.canonical((self._world(world), *map(self._process, processes)))

    def _world(self, world: World) -> int:
        if world.news:
            world = world._replace(news=0)
        number = self._world_numbers.setdefault(world, len(self.worlds))
        if number == len(self.worlds):
            self.worlds.append(world)
        return number

    def _process(self, process: ModelProcess) -> int:
        number = self._process_numbers.setdefault(process, len(self.processes))
        if number == len(self.processes):
            self.processes.append(process)
            self._unaware.append(_is_unaware(process))
        return number

    def unpacked(self, state: int) -> tuple[int, ...]:
        parts = []
        for _ in range(self._model.bounds.processes):
            parts.append(state & MASK)
            state >>= BITS
        return (state, *reversed(parts))

    def canonical(self, parts: tuple[int, ...]) -> int:
        """The one state that stands for all that differ by the names of pods and processes."""
        if not self._orders:
            return self._packed(parts)
        best = self._best.get(parts[0])
        if best is None:
            best = self._best[parts[0]] = self._best_orders(parts[0])
        world, orders = best
        least = -1
        for order in orders:
            state = self._packed((world, *[self._other(part, order) for part in parts[1:]]))
            if least < 0 or state < least:
                least = state
        return least

    def _packed(self, parts: tuple[int, ...]) -> int:
        if len(parts) == 2:
            return parts[0] << BITS | parts[1]
        state = parts[0]
        for process in sorted(parts[1:]):
            state = state << BITS | process
        return state

    def _best_orders(self, world: int) -> tuple[int, list[int]]:
        """The least number among the world's other names, and the orders that lead there."""
        others = [self._world(renamed(self.worlds[world], order)) for order in self._orders]
        least = min(others)
        return least, [number for number, other in enumerate(others) if other == least]

    def _other(self, process: int, order: int) -> int:
        key = process * len(self._orders) + order
        other = self._renamed.get(key)
        if other is None:
            changed = renamed_process(self.processes[process], self._orders[order])
            other = self._renamed[key] = self._process(changed)
        return other

    # steps

    def moves(self, parts: tuple[int, ...]) -> Iterator[tuple[Move, tuple[int, ...]]]:
        """What may happen in a state, each with the parts of the state after it."""
        world, *processes = parts
        for move in self._cluster_moves(world):
            yield move, (move.world, *self._behind(move.effect, processes))
        for at, process in enumerate(processes):
            others = [*processes[:at], *processes[at + 1 :]]
            if process in processes[:at]:
                continue  # the same again, under another name
            for move in self._own_moves(world, process, self._alone(others)):
                rest = self._behind(move.effect, others)
                yield move, (move.world, *rest[:at], move.process, *rest[at:])

    def told(self, parts: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The same in words."""
        world, *processes = parts
        for step in self._model.cluster.steps(self.worlds[world]):
            move = self._move(step)
            after = (move.world, *self._behind(move.effect, processes))
            yield f"{step.who} {step.what}", after
        for at, process in enumerate(processes):
            others = [*processes[:at], *processes[at + 1 :]]
            for step in self._own_steps(world, process, self._alone(others)):
                move = self._move(step)
                rest = self._behind(move.effect, others)
                after = (move.world, *rest[:at], move.process, *rest[at:])
                yield f"{step.who}-{at} {step.what}", after

    def _own_steps(self, world: int, process: int, alone: bool) -> Iterator[ModelStep]:
        at, of = self.worlds[world], self.processes[process]
        return self._model.claimctl.steps(at, of, alone=alone)

    def _alone(self, others: list[int]) -> bool:
        return not any(self._unaware[other] for other in others)

    def _behind(self, effect: dict[int, int] | None, processes: list[int]) -> list[int]:
        return processes if effect is None else [effect[process] for process in processes]

    def _cluster_moves(self, world: int) -> list[Move]:
        moves = self._cluster.get(world)
        if moves is None:
            steps = self._model.cluster.steps(self.worlds[world])
            moves = self._cluster[world] = [self._move(step) for step in steps]
        return moves

    def _own_moves(self, world: int, process: int, alone: bool) -> list[Move]:
        if self._model.bounds.processes == 1:
            return [self._move(step) for step in self._own_steps(world, process, alone)]
        key = (world << BITS | process) << 1 | alone
        moves = self._own.get(key)
        if moves is None:
            steps = self._own_steps(world, process, alone)
            moves = self._own[key] = [self._move(step) for step in steps]
        return moves

    def _move(self, step: ModelStep) -> Move:
        world, process = self._world(self._mark_behind(step.world)), -1
        kind = FAIR if step.fair else MAY
        if step.process is not None:
            process = self._process(step.process)
            kind = OURS if step.fair else MAY
        broken = step.broken or self._wrong(world)
        return Move(kind, world, process, self._effect(step.world), broken)

    def _mark_behind(self, after: World) -> World:
        """A process that is to begin at the checkpoint has not seen what was written since."""
        if after.mark is None or not after.news:
            return after
        mark = behind(after.mark, after, self._model.dialect, self._model.bounds)
        return after._replace(mark=mark)

    def _wrong(self, world: int) -> str:
        if world not in self._broken:
            self._broken[world] = broken_in(self.worlds[world])
        return self._broken[world]

    def _effect(self, after: World) -> dict[int, int] | None:
        if not after.news:
            return None
        key = (after.news, after.claim if after.news & News.CLAIM else None)
        if key not in self._effects:
            self._effects[key] = _Effect(self, after)
        return self._effects[key]

    def behind(self, process: int, after: World) -> int:
        model = self._model
        seen = overtaken(self.processes[process], after, model.dialect, model.bounds)
        return self._process(seen)


class _Effect(dict[int, int]):
    """What becomes of each process, by number, after somebody else's writes."""

    def __init__(self, space: Space, after: World) -> None:
        super().__init__()
        self._space = space
        self._after = after

    def __missing__(self, process: int) -> int:
        number = self[process] = self._space.behind(process, self._after)
        return number


def _is_unaware(process: ModelProcess) -> bool:
    """Whether it acts on what it knew before the reservation's deletion."""
    write = process.write
    return process.reservation.there == There.YES or (write is not None and bool(write.early))
