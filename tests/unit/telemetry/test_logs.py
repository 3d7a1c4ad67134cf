"""Log lines as they come out."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from opentelemetry import trace

from claimctl.telemetry.logs import HIDDEN, Format, Level, Repeated, configure
from tests.support.hostile import TEXT, forged_lines, obeyed

NOON = datetime(2026, 1, 1, 12, 0, 0, 5000, tzinfo=UTC)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is the process's own: give it back as it was."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    structlog.configure(**before[2])
    structlog.contextvars.clear_contextvars()


def logged(form: Format, level: Level = Level.INFO) -> io.StringIO:
    out = io.StringIO()
    configure(form, level, stream=out, now=lambda: NOON)
    return out


def log_a_failure(message: str) -> None:
    token = "abc" + "def"
    try:
        assert token
        raise ValueError(message)
    except ValueError:
        structlog.get_logger().exception("failed")


def test_json_is_one_object_a_line_with_what_was_bound() -> None:
    out = logged(Format.JSON)
    structlog.contextvars.bind_contextvars(claim="ml/train")
    structlog.get_logger("x").info("claim released", reason="Idle", count=2)
    assert json.loads(out.getvalue()) == {
        "message": "claim released",
        "level": "info",
        "timestamp": "2026-01-01T12:00:00.005Z",
        "claim": "ml/train",
        "reason": "Idle",
        "count": 2,
    }


def test_a_message_of_many_lines_stays_on_one_line_of_json() -> None:
    out = logged(Format.JSON)
    log_a_failure("one\ntwo")
    [line] = out.getvalue().splitlines()
    assert json.loads(line)["exception"][0]["exc_value"] == "one\ntwo"


@pytest.mark.parametrize("form", [Format.JSON, Format.HUMAN])
def test_tracebacks_do_not_show_the_values_of_variables(form: Format) -> None:
    out = logged(form)
    log_a_failure("refused")
    assert "ValueError" in out.getvalue()
    assert "abcdef" not in out.getvalue()


def test_people_get_columns() -> None:
    out = logged(Format.HUMAN)
    structlog.get_logger().warning("claim kept", reason="Consumers")
    assert out.getvalue().split() == [
        "2026-01-01T12:00:00.005Z",
        "[warning",
        "]",
        "claim",
        "kept",
        "reason=Consumers",
    ]


@pytest.mark.parametrize("form", [Format.JSON, Format.HUMAN])
def test_a_text_of_a_tenant_stays_in_its_line(form: Format) -> None:
    out = logged(form)
    structlog.get_logger().info("seen", object=TEXT, error=ValueError(TEXT), names=[TEXT])
    log_a_failure(TEXT)
    logging.getLogger("library").error("failed: %s", TEXT, exc_info=ValueError(TEXT))
    assert obeyed(out.getvalue()) == set()
    assert forged_lines(out.getvalue()) == []


def test_automatic_is_json_where_there_is_no_terminal() -> None:
    out = logged(Format.AUTO)
    structlog.get_logger().info("hello")
    assert json.loads(out.getvalue())["message"] == "hello"


def test_lines_below_the_level_are_dropped() -> None:
    out = logged(Format.JSON, Level.WARNING)
    structlog.get_logger().info("hello")
    assert out.getvalue() == ""


def test_secrets_are_hidden_by_their_keys() -> None:
    out = logged(Format.JSON)
    structlog.get_logger().info("request", bearer_token="abc", Authorization="Bearer abc", a=1)
    line = json.loads(out.getvalue())
    assert (line["bearer_token"], line["Authorization"], line["a"]) == (HIDDEN, HIDDEN, 1)


def test_warnings_of_libraries_come_in_the_same_form() -> None:
    out = logged(Format.JSON)
    logging.getLogger("opentelemetry").warning("cannot reach %s", "collector")
    logging.getLogger("opentelemetry").info("not this")
    line = json.loads(out.getvalue())
    assert (line["message"], line["level"]) == ("cannot reach collector", "warning")


def test_a_line_has_the_ids_of_the_span_in_which_it_was_logged() -> None:
    out = logged(Format.JSON)
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)
    with trace.use_span(trace.NonRecordingSpan(context)):
        structlog.get_logger().info("inside")
    structlog.get_logger().info("outside")
    inside, outside = map(json.loads, out.getvalue().splitlines())
    assert (inside["trace_id"], inside["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")
    assert "trace_id" not in outside


class MovedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def lines_of(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_one_of_equal_warnings_is_logged_a_minute_and_says_how_many_were_not() -> None:
    out, watch = io.StringIO(), MovedClock()
    configure(Format.JSON, stream=out, now=watch)
    log = structlog.get_logger("x")
    for _ in range(2):
        for _ in range(1_000):
            log.warning("watch failed", resource="pods")
            log.warning("watch failed", resource="nodes")
        watch.now += timedelta(seconds=61)
    log.warning("watch failed", resource="pods")
    logged_lines = [(line["resource"], line.get("equal_lines_left_out")) for line in lines_of(out)]
    assert logged_lines == [
        ("pods", None),
        ("nodes", None),
        ("pods", 999),
        ("nodes", 999),
        ("pods", 999),
    ]


def test_equal_tracebacks_of_libraries_are_logged_once_a_minute() -> None:
    out, watch = io.StringIO(), MovedClock()
    configure(Format.JSON, stream=out, now=watch)
    for number in range(1_000):
        try:
            raise OSError(24, "Too many open files")
        except OSError:
            logging.getLogger("asyncio").exception("socket.accept() out of %s", "resource")
        log_a_failure(f"failure {number % 2}")
    watch.now += timedelta(seconds=61)
    logging.getLogger("asyncio").error("socket.accept() out of resource")
    messages = [line["message"] for line in lines_of(out)]
    assert messages[:3] == ["socket.accept() out of resource", "failed", "failed"]
    assert len(messages) == 4


def test_what_is_decided_is_logged_as_often_as_it_is_done() -> None:
    out = logged(Format.JSON)
    for _ in range(5):
        structlog.get_logger("x").info("claim released", reason="Idle")
    assert len(lines_of(out)) == 5


def test_equal_warnings_about_two_claims_are_two_lines() -> None:
    out = logged(Format.JSON)
    for claim in ("ml/a", "ml/b", "ml/a"):
        with structlog.contextvars.bound_contextvars(claim=claim):
            structlog.get_logger("x").warning("claim cannot be changed")
    assert [line["claim"] for line in lines_of(out)] == ["ml/a", "ml/b"]


def test_the_lines_that_are_remembered_are_bounded() -> None:
    repeated = Repeated(MovedClock())
    for number in range(5_000):
        assert repeated.left_out((f"line {number}",)) == 0
    assert repeated.left_out(("line 4999",)) is None
    assert repeated.left_out(("line 0",)) == 0
