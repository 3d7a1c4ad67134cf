"""The logs of commands, which begin with the first line."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
import structlog

from claimctl.telemetry.face import LateLogger, LateLogs
from claimctl.telemetry.logs import Format, Level, configure

LINES: dict[str, Callable[[], None]] = {
    "claimctl": lambda: LateLogger("claimctl.kube").warning("it is late", reason="Throttled"),
    "a library": lambda: logging.getLogger("aiohttp").warning("it is late"),
}


@pytest.fixture
def log() -> Iterator[StringIO]:
    root = logging.getLogger()
    before, out = (root.handlers[:], root.level), StringIO()
    LateLogs(lambda: configure(Format.JSON, Level.WARNING, stream=out)).begin()
    yield out
    root.handlers[:], root.level = before


@pytest.mark.parametrize("who", LINES)
def test_logs_are_set_up_with_the_first_line(who: str, log: StringIO) -> None:
    assert not structlog.is_configured()
    LINES[who]()
    assert structlog.is_configured()
    LateLogger("claimctl.kube").info("nobody asked")
    [line] = log.getvalue().splitlines()
    assert json.loads(line)["message"] == "it is late"


def test_later_lines_need_no_other_set_up(log: StringIO) -> None:
    logger = LateLogger("claimctl.kube")
    for number in range(3):
        logger.warning("it is late", number=number)
    assert [json.loads(line)["number"] for line in log.getvalue().splitlines()] == [0, 1, 2]


def test_what_is_set_up_afterwards_counts(log: StringIO) -> None:
    other = StringIO()
    configure(Format.JSON, Level.ERROR, stream=other)
    LateLogger("claimctl.kube").warning("it is late")
    LateLogger("claimctl.kube").error("it is over")
    assert log.getvalue() == ""
    assert json.loads(other.getvalue())["message"] == "it is over"
