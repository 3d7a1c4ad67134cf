"""A quiet watch is asked how far it has come by a second watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from kube_in_process.virtual import run
from structlog.testing import capture_logs

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.informer import Informer
from claimctl.kube.probes import WatchProbes
from claimctl.telemetry.face import Metric, Telemetry
from claimctl.wire.resources import PODS
from tests.support.recording import Recording
from tests.support.wire_server import (
    Reply,
    Wait,
    WireServer,
    bookmark,
    event,
    expired,
    failure,
    listing,
    silence,
    stream,
)


@asynccontextmanager
async def followed(
    server: WireServer, telemetry: Telemetry | None = None
) -> AsyncIterator[WatchProbes]:
    """The probes of an informer that has followed the server for one second."""
    clock = LoopClock()
    client = Client(server, clock, rng=Random(1), telemetry=telemetry)
    informer = Informer(client, PODS, clock, rng=Random(2))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(1)
    yield informer.probes
    task.cancel()


def asked(server: WireServer) -> str:
    """The requests in short: lists, and watches from a version."""
    return ", ".join(
        f"watch {request.query['resourceVersion']}" if "watch" in request.query else "list"
        for request in server.requests
    )


def caught_up(*script: Reply, version: str = "20", seconds: float = 3.0) -> tuple[bool, float, str]:
    """Whether the copy came to a version asked for at 1 s, how long that took; and the requests."""
    server = WireServer(*script)

    async def main() -> tuple[bool, float, str]:
        async with followed(server) as probes:
            reached = await probes.catch_up(version, seconds)
            again = await probes.catch_up(version, 0)
        assert again == reached
        return reached, round(LoopClock().monotonic() - 1, 3), asked(server)

    return run(main())


def test_a_copy_that_has_come_as_far_needs_no_wait() -> None:
    script = listing(10), stream(event("ADDED", "a", 20), Wait(None))
    assert caught_up(*script) == (True, 0, "list, watch 10")


def test_a_copy_comes_as_far_by_an_event_that_is_under_way() -> None:
    script = listing(10), stream(Wait(1.2), event("ADDED", "a", 21), Wait(None))
    assert caught_up(*script) == (True, 0.2, "list, watch 10")


def test_a_quiet_stream_is_as_far_as_the_server_says_to_who_asks_anew() -> None:
    quiet = stream(event("ADDED", "a", 15), Wait(None))
    answer = stream(Wait(1), bookmark(25), Wait(None))
    requests = "list, watch 10, watch 15"
    assert caught_up(listing(10), quiet, answer) == (True, 1.3, requests)


def test_a_stream_that_is_late_counts_when_it_has_come_as_far() -> None:
    """The server has something to tell that the stream has not brought yet."""
    late = stream(Wait(3), event("ADDED", "a", 12), event("DELETED", "a", 22), Wait(None))
    answer = stream(event("ADDED", "a", 12), event("DELETED", "a", 22), bookmark(25))
    requests = "list, watch 10, watch 10, watch 10"
    assert caught_up(listing(10), late, answer, answer, answer) == (True, 2.05, requests)


def test_an_answer_takes_nothing_back_from_a_stream_that_came_further_meanwhile() -> None:
    further = stream(Wait(1.5), event("ADDED", "a", 30), Wait(None))
    answer = stream(Wait(1), bookmark(25))
    assert caught_up(listing(10), further, answer, version="28")[:2] == (True, 0.5)


def expected(*script: Reply, version: str = "20") -> tuple[bool, float, str]:
    """Whether the copy came to a version asked for at 6 s and expected since 1 s, and how long
    that took; and the requests."""
    server = WireServer(*script)

    async def main() -> tuple[bool, float, str]:
        async with followed(server) as probes:
            probes.expect(5.0)
            probes.expect(5.1)
            await asyncio.sleep(5)
            reached = await probes.catch_up(version, 3.0)
        return reached, round(LoopClock().monotonic() - 6, 3), asked(server)

    return run(main())


def answer(seconds: float, version: int) -> Reply:
    return stream(Wait(seconds), bookmark(version), Wait(None))


QUIET = stream(Wait(None))


def test_probes_that_began_before_the_question_answer_sooner() -> None:
    probes = answer(1, 25), answer(1, 26), answer(1, 27)
    requests = "list, watch 10, watch 10, watch 10, watch 25"
    assert expected(listing(10), QUIET, *probes) == (True, 0.0, requests)


def test_a_probe_that_is_answered_too_early_does_not_spoil_the_next() -> None:
    probes = answer(0.9, 15), answer(0.75, 25), answer(2, 27)
    assert expected(listing(10), QUIET, *probes)[:2] == (True, 0.25)


async def test_expectations_one_after_the_other_ask_no_more_than_three_times_a_second() -> None:
    """Where pods change all the time, each probe ends at once, by an event."""
    busy = stream(event("ADDED", "a", 12), Wait(None))
    server = WireServer(listing(10), QUIET, *[busy] * 60)
    async with followed(server) as probes:
        for number in range(50):
            probes.expect(1.0 - number / 50)
            await asyncio.sleep(0.02)
        await asyncio.sleep(1)
    assert len(server.requests) - 2 <= 5


def test_a_probe_says_nothing_of_a_copy_that_was_listed_anew_since() -> None:
    """Between the two lists etcd was restored: its versions have begun again."""
    lost, late = stream(Wait(5), expired()), answer(1.3, 25)
    *outcome, requests = expected(listing(10), lost, late, listing(12), *[QUIET] * 8)
    assert outcome == [False, 3.0]
    assert requests.startswith("list, watch 10, watch 10, list, watch 12")


@pytest.mark.parametrize(
    "answer",
    [stream(bookmark(19)), stream(), stream(expired()), failure(410, "Gone"), stream(Wait(None))],
    ids=["server behind", "no bookmark", "event 410", "status 410", "nothing"],
)
def test_who_cannot_say_how_far_it_is_has_not_come_as_far(answer: Reply) -> None:
    script = listing(10), stream(Wait(None)), answer, answer, answer, answer
    assert caught_up(*script)[:2] == (False, 3.0)


def test_without_a_stream_there_is_nothing_to_ask() -> None:
    assert caught_up(listing(10), silence()) == (False, 3.0, "list, watch 10")


async def test_several_who_wait_ask_once() -> None:
    server = WireServer(listing(10), stream(Wait(None)), stream(Wait(1), bookmark(25), Wait(None)))
    async with followed(server) as probes:
        reached = await asyncio.gather(*(probes.catch_up(str(20 + n), 3) for n in range(5)))
    assert reached == [True] * 5
    assert len(server.requests) == 3


def silent(pause: float) -> tuple[list[dict[str, float]], int]:
    """What counts as broken before each question, the last of which is answered, and after it; and
    how often an administrator is told.

    Args:
        pause: seconds between two questions.
    """
    mute = [stream(bookmark(19))] * 50
    server, telemetry = WireServer(listing(10), QUIET, *mute, answer(0, 25)), Recording()
    broken: list[dict[str, float]] = []

    async def main() -> None:
        async with followed(server, telemetry) as probes:
            while not broken or not await probes.catch_up("20", 3.0):
                broken.append(telemetry.nonzero(Metric.WATCH_BROKEN))
                await asyncio.sleep(pause)
        broken.append(telemetry.nonzero(Metric.WATCH_BROKEN))

    with capture_logs() as lines:
        run(main())
    return broken, sum(line["log_level"] == "warning" for line in lines)


def test_a_server_that_never_says_how_far_it_is_counts_as_broken_until_it_does() -> None:
    """So does an API server with an old etcd, while no pod changes."""
    broken, told = silent(pause=3.0)
    assert broken[:10] == [{}] * 10
    assert broken[-2:] == [{"pods": 1}, {}]
    assert told == 1


def test_questions_that_are_far_apart_are_not_one_silence() -> None:
    broken, told = silent(pause=40.0)
    assert set(map(str, broken)) == {"{}"}
    assert told == 0


def test_a_silence_begins_anew_after_an_answer() -> None:
    script = QUIET, stream(bookmark(19)), answer(0, 25), *[stream(bookmark(26))] * 2
    server, telemetry = WireServer(listing(10), *script), Recording()

    async def main() -> list[bool]:
        async with followed(server, telemetry) as probes:
            asked = ("20", 0.4), ("20", 3.0), ("30", 0.4), ("30", 0.4)
            return [await probes.catch_up(version, seconds) for version, seconds in asked]

    assert run(main()) == [False, True, False, False]
    assert telemetry.nonzero(Metric.WATCH_BROKEN) == {}
