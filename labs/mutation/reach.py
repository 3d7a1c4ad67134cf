"""Which tests reach which mutable places, and how long each test takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from labs.mutation import forks
from labs.mutation.places import Place
from labs.mutation.playing import play

UNIT_TESTS = ("tests/unit", "claimctl-reschedule/claimctl_reschedule_tests")
"""The folders of unit tests."""
UNMEASURED = 1000.0
"""CPU seconds allowed to a test that is played for the first time."""


@dataclass(slots=True)
class Reach:
    """What a run of all tests without a mutation showed.

    Attributes:
        seconds: the CPU time of each test, by node id.
        places: the keys of the places that each test reached.
        broken: tests that failed, which can catch nothing.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    places: dict[str, frozenset[str]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Reach:
        kept = json.loads(file.read_text())
        keys = kept["keys"]
        places = {test: frozenset(keys[at] for at in which) for test, which in kept["tests"]}
        return cls(kept["seconds"], places, kept["broken"])

    def write(self, file: Path) -> None:
        keys = sorted(set().union(*self.places.values()))
        at = {key: number for number, key in enumerate(keys)}
        tests = [(test, [at[key] for key in which]) for test, which in self.places.items()]
        kept = {"keys": keys, "tests": tests, "seconds": self.seconds, "broken": self.broken}
        file.write_text(json.dumps(kept))

    def measure(self, session: pytest.Session, places: Sequence[Place], workers: int) -> None:
        """Play every test that was not measured yet, the tests of a file in one process."""
        known = self.seconds.keys() | self.broken.keys()
        new = [item for item in session.items if item.nodeid not in known]
        files = groupby(new, key=lambda item: item.path)
        tasks = [(file, partial(_tell_all, session, list(items))) for file, items in files]
        for ended in forks.run(tasks, workers):
            for played in ended.told:
                if played.failure:
                    self.broken[played.test] = played.failure
                    continue
                self.seconds[played.test] = played.seconds
                self.places[played.test] = frozenset(places[at].key for at in played.reached)
            if not ended.well:
                self.broken[str(ended.name)] = "its process ended early"

    def tests_of(self, place: Place) -> Iterator[str]:
        """The tests that reach a place: unit tests first, of the module's package before others;
        then the model and the scenarios. Quick ones come before slow ones."""
        package = place.module.split(".")[1]

        def rank(test: str) -> tuple[int, float]:
            unit = test.startswith(UNIT_TESTS)
            own = test.startswith(tuple(f"{folder}/{package}/" for folder in UNIT_TESTS))
            return 2 - unit - own, self.seconds[test]

        yield from sorted(
            (t for t, reached in self.places.items() if place.key in reached), key=rank
        )


def _tell_all(session: pytest.Session, items: list[pytest.Item], tell: forks.Tell) -> None:
    for played in play(session, items, dict.fromkeys((i.nodeid for i in items), UNMEASURED)):
        tell(played)
