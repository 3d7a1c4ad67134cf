"""Tests repeat: Hypothesis tries the same examples every time.

``HYPOTHESIS_PROFILE=explore`` tries others, and many more of them.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator

import pytest
import structlog
from hypothesis import settings
from kube_in_process.options import ClusterOptions

from claimctl.controller.reconcilers import claim
from claimctl.telemetry.face import LateLogs
from tests.support.last_status import checked

settings.register_profile("repeat", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so. The commands that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The collector of garbage need not look at thousands of tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Half of the workers begin with the tests that wait, and the others compute meanwhile.

    Each worker begins with an equal part of the list. One without tests takes some from the end of
    another's part, so that those that wait stay where they are.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    waiting = [item for item in items if item.get_closest_marker("real_time") is not None]
    ordered = [item for item in items if item.get_closest_marker("real_time") is None]
    part, patient = len(items) // workers, max(workers // 2, 1)
    for number in range(patient):
        place = number * part
        ordered[place:place] = waiting[number::patient]
    items[:] = ordered


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keep bytes out of the names of tests: each test process has to collect the same names.

    Compressed bytes contain the time of day, for example.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def default_logging() -> Iterator[None]:
    """A command that is run in the process sets a level; the next test starts without one."""
    _forget_logging()
    yield
    _forget_logging()


def _forget_logging() -> None:
    structlog.reset_defaults()
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not isinstance(each, LateLogs)]


@pytest.fixture(autouse=True)
def last_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No decision of a controller may follow from a status that is the last write."""
    monkeypatch.setattr(claim, "decide", checked)


@pytest.fixture
def options(request: pytest.FixtureRequest) -> ClusterOptions:
    """The cluster that ``@pytest.mark.cluster(OPTIONS)`` names, where no parameter does."""
    marker = request.node.get_closest_marker("cluster")
    assert marker is not None, "the test has to say on which cluster: @pytest.mark.cluster(OPTIONS)"
    found: ClusterOptions = marker.args[0]
    return found
