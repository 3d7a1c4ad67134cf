"""Plays single tests of a collected pytest session in this process."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import pytest

from labs.mutation import switch

FEWEST_CPU_SECONDS, TIMES_USUAL = 20.0, 20.0
"""A test that takes more CPU seconds than the sum of this, and of so many times what it usually
takes, is taken for one that never ends."""


@dataclass(frozen=True, slots=True)
class Played:
    """What one test did.

    Attributes:
        test: its node id.
        failure: one line; "" if it passed or was skipped.
        seconds: CPU time of this process.
        reached: the numbers of the mutable places that it evaluated.
    """

    test: str
    failure: str
    seconds: float
    reached: frozenset[int]


@dataclass(slots=True, eq=False)
class _Failures:
    """A plugin that keeps the first failure of a test."""

    first: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.first:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.first = str(crash.message if crash else report.longrepr).strip() or "failed"


def play(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    usual: Mapping[str, float],
    begins: Callable[[str], None] = lambda _: None,
) -> Iterator[Played]:
    """Play the tests one by one. SIGPROF ends the process if one of them runs away.

    Args:
        session: where the tests were collected.
        items: the tests.
        usual: CPU seconds that each test takes, if known.
        begins: called with the node id of each test before it is played.
    """
    manager = session.config.pluginmanager
    if (reporter := manager.getplugin("terminalreporter")) is not None:
        manager.unregister(reporter)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for item, after in zip_longest(items, items[1:]):
        begins(item.nodeid)
        failures = _Failures()
        manager.register(failures)
        limit = FEWEST_CPU_SECONDS + TIMES_USUAL * usual.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, limit)
        switch.reached.clear()
        began = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        seconds = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        manager.unregister(failures)
        first = failures.first.splitlines()[:1]
        yield Played(item.nodeid, first[0] if first else "", seconds, frozenset(switch.reached))
