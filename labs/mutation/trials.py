"""Tries mutations: switches one on in a forked process and plays the tests that reach it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from labs.mutation import forks, switch
from labs.mutation.places import Place
from labs.mutation.playing import play
from labs.mutation.reach import Reach

BATCH = 10
"""Number of mutations that are tried before the tests that failed are played without them."""
BEGINS, FAILED = "begins", "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests made of one mutation.

    Attributes:
        place: the mutation.
        test: the test that caught it; "" if none did.
        why: the failure.
        played: number of tests that were played.
        reaching: number of tests that reach the place.
    """

    place: Place
    test: str
    why: str
    played: int
    reaching: int

    def __str__(self) -> str:
        if self.test:
            return f"caught  {self.place}\n        {self.test}: {self.why[:140]}"
        return f"MISSED  {self.place}\n        {self.played} of {self.reaching} tests played"


@dataclass(slots=True)
class Trials:
    """Plays the mutations of one session.

    Attributes:
        session: the collected tests.
        places: all places; the index is the number of the switch.
        reach: which test reaches which place.
        workers: number of processes at once.
        patience: CPU seconds that the tests of one mutation may take without it.
    """

    session: pytest.Session
    places: Sequence[Place]
    reach: Reach
    workers: int
    patience: float
    unsound: set[str] = field(default_factory=set)
    """Tests that failed alone without a mutation, although they had passed before."""
    _sound: set[str] = field(default_factory=set)

    def results(self, chosen: Sequence[Place]) -> Iterator[Result]:
        """Try each mutation. A test that fails alone without the mutation does not count."""
        waiting = deque(chosen)
        while waiting:
            batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
            results = list(self._tried(batch))
            self._check({result.test for result in results} - {""} - self._sound)
            for result in results:
                if result.test in self.unsound:
                    waiting.append(result.place)
                else:
                    yield result

    def _tried(self, chosen: Sequence[Place]) -> Iterator[Result]:
        numbers = {place: number for number, place in enumerate(self.places)}
        tests = {place: self._tests(place) for place in chosen}
        tasks = [(place, partial(self._play, tests[place], numbers[place])) for place in chosen]
        for ended in forks.run(tasks, self.workers):
            place, reaching = ended.name, len(list(self.reach.tests_of(ended.name)))
            played = [what for word, what in ended.told if word == BEGINS]
            failures = [what for word, what in ended.told if word == FAILED]
            test, why = "", ""
            if failures:
                test, why = played[-1], failures[0]
            elif not ended.well:
                test, why = played[-1], "the process did not end, or was killed"
            yield Result(place, test, why, len(played), reaching)

    def _tests(self, place: Place) -> list[pytest.Item]:
        """The tests of a place, as many as the patience allows."""
        items = {item.nodeid: item for item in self.session.items}
        tests, spent = [], 0.0
        for test in self.reach.tests_of(place):
            if test not in items or test in self.unsound:
                continue
            spent += self.reach.seconds[test]
            if spent > self.patience:
                break
            tests.append(items[test])
        return tests

    def _check(self, tests: set[str]) -> None:
        """Play each test without a mutation."""
        items = [item for item in self.session.items if item.nodeid in tests]
        tasks = [(item.nodeid, partial(self._play, [item], switch.OFF)) for item in items]
        for ended in forks.run(tasks, self.workers):
            passed = ended.well and not any(word == FAILED for word, _ in ended.told)
            (self._sound if passed else self.unsound).add(ended.name)

    def _play(self, items: list[pytest.Item], number: int, tell: forks.Tell) -> None:
        switch.choose(number)

        def begins(test: str) -> None:
            tell((BEGINS, test))

        for played in play(self.session, items, self.reach.seconds, begins):
            if played.failure:
                tell((FAILED, played.failure))
                return
