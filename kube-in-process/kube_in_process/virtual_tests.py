"""A plugin of pytest: an ``async def`` test runs on a virtual clock, see ``virtual``.

Switch it on by ``-p kube_in_process.virtual_tests``; another plugin may run such tests elsewhere.

A fixture may give an asynchronous context manager. The test gets what the manager yields. It is
entered on the loop of the test and in its task, and left when the test is over: it sees how the
test ended, and what it raises then fails the test.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from kube_in_process.virtual import run

LIMIT = 7200.0
"""Virtual seconds after which a test is given up that names no limit of its own."""
_MARKERS = (
    "virtual_limit(seconds): give an async test up after so many virtual seconds",
    "real_time(seconds): run an async test on the machine's clock, as it uses sockets or processes,"
    " and give it up after so many seconds",
)


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function; leave any other one to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    test = _entered(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    if (seconds := _seconds_of(pyfuncitem, "real_time")) is not None:
        asyncio.run(_bounded(test, seconds))
    else:
        run(test, limit=_seconds_of(pyfuncitem, "virtual_limit") or LIMIT)
    return True


async def _entered(test: Callable[..., Awaitable[None]], given: Mapping[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        values = {}
        for name, value in given.items():
            manager = isinstance(value, AbstractAsyncContextManager)
            values[name] = await stack.enter_async_context(value) if manager else value
        await test(**values)


async def _bounded(test: Awaitable[None], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await test


def _seconds_of(test: pytest.Function, name: str) -> float | None:
    """The seconds of a marker; None if the test does not have it."""
    marker = test.get_closest_marker(name)
    return None if marker is None else float(marker.args[0])
