"""The plugin that runs ``async def`` tests: a test that hangs fails, and fixtures end with it."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

HEAD = """
import asyncio
from contextlib import asynccontextmanager

import pytest

pytest_plugins = ("kube_in_process.virtual_tests",)
"""


def played(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    pytester.makepyfile(HEAD + test)
    return pytester.runpytest_inprocess("-q", "-p", "no:xdist", "-W", "error")


def test_time_is_virtual_and_what_fails_fails(pytester: pytest.Pytester) -> None:
    result = played(
        pytester,
        """
async def test_an_hour():
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == 3600

async def test_what_fails():
    await asyncio.sleep(1)
    assert asyncio.get_running_loop().time() == 2
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*assert 1.0 == 2*"])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("await asyncio.Event().wait()", "*Deadlock: nothing is ready and no timer is set*"),
        ("while True: await asyncio.sleep(60)", "*OutOfTime: still running after 7200 *"),
        ("while True: await asyncio.sleep(0)", "*OutOfTime: 1000000 rounds without a wait*"),
        (
            "asyncio.get_running_loop().call_soon(lambda: 1 / 0); await asyncio.sleep(1)",
            "*LostError: Exception in callback*",
        ),
    ],
    ids=["nobody wakes it", "it never ends", "it spins", "a failure that nobody sees"],
)
def test_a_test_that_hangs_or_loses_a_failure_fails(
    pytester: pytest.Pytester, body: str, told: str
) -> None:
    result = played(pytester, f"async def test_it():\n    {body}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([told])


@pytest.mark.parametrize("marker", ["virtual_limit(30)", "real_time(0.1)"])
def test_a_marker_limits_the_time(pytester: pytest.Pytester, marker: str) -> None:
    result = played(
        pytester,
        f"""
@pytest.mark.{marker}
async def test_it():
    await asyncio.sleep(40)
""",
    )
    result.assert_outcomes(failed=1)


def test_a_fixture_is_entered_in_the_tests_task_and_sees_its_end(
    pytester: pytest.Pytester,
) -> None:
    result = played(
        pytester,
        """
@pytest.fixture(params=["a", "b"])
@asynccontextmanager
async def served(request):
    task = asyncio.current_task()
    try:
        yield request.param, task
    except ZeroDivisionError:
        print("the fixture saw it")
        raise
    assert request.param == "a", "judged at the end"

async def test_good(served):
    assert served[1] is asyncio.current_task()

async def test_bad(served):
    1 / 0
""",
    )
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*judged at the end*", "*the fixture saw it*"])
