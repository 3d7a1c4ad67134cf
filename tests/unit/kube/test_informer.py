"""A local copy that follows the server through everything that happens to a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from kube_in_process.virtual import run

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Unreachable
from claimctl.kube.informer import Change, Informer
from claimctl.telemetry.face import Metric
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from tests.support.telemetry import Recorder
from tests.support.wire_server import (
    Reply,
    Wait,
    WireServer,
    bookmark,
    event,
    expired,
    failure,
    listing,
    stream,
    thing,
    unreachable,
)

Told = tuple[str, str | None, str | None, bool]


def version(pod: Pod | None) -> str | None:
    return None if pod is None else pod.metadata.resource_version


@dataclass
class InformerStory:
    """An informer over a scripted server for ``seconds``, and what it told."""

    server: WireServer
    told: list[Told] = field(default_factory=list)
    informer: Informer[Pod] | None = None
    connects: int = 0
    listings: list[str] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)

    def play(self, seconds: float = 120.0, begin: str = "", **options: Any) -> InformerStory:
        async def main() -> None:
            clock = LoopClock()
            client = Client(self.server, clock, self.recorder, rng=Random(1))
            self.informer = Informer(client, PODS, clock, rng=Random(2), **options)
            self.informer.begin_at(begin)
            self.informer.subscribe(self.hear)
            self.informer.on_connect(self.connected)
            self.informer.on_list(self.listed)
            task = asyncio.create_task(self.informer.run())
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                task.result()
            task.cancel()

        run(main())
        return self

    def hear(self, change: Change[Pod]) -> None:
        self.told.append((change.name, version(change.old), version(change.new), change.relist))

    def listed(self, before: str, version: str) -> None:
        self.listings.append(version)

    def connected(self) -> None:
        self.connects += 1

    @property
    def names(self) -> list[str]:
        assert self.informer is not None
        return [pod.metadata.name for pod in self.informer.items()]

    @property
    def asked(self) -> list[str]:
        """Requests in short: a list, a page of one, or a watch from a version."""
        return [
            f"watch {request.query['resourceVersion']}"
            if "watch" in request.query
            else "page" * bool(request.query.get("continue")) or f"list {request.query['limit']}"
            for request in self.server.requests
        ]


def story(*script: Reply) -> InformerStory:
    return InformerStory(WireServer(*script))


def test_a_list_then_events_make_the_copy_and_tell_every_change_once() -> None:
    told = story(
        listing(10, thing("a", 1), token="t"),
        listing(10, thing("b", 2)),
        stream(
            event("MODIFIED", "a", 11),
            event("DELETED", "b", 12),
            event("ADDED", "c", 13),
            Wait(),
        ),
    ).play()
    assert told.asked == ["list 50", "page", "watch 10"]
    assert told.told == [
        ("a", None, "1", True),
        ("b", None, "2", True),
        ("a", "1", "11", False),
        ("b", "12", None, False),
        ("c", None, "13", False),
    ]
    assert told.names == ["a", "c"]


async def test_it_is_synced_once_the_last_page_is_there() -> None:
    server = WireServer(listing(10, thing("a", 1), token="t"), Reply(before=[Wait(5)]))
    server.script[1] = Reply(before=[Wait(5)], body=listing(10, thing("b", 2)).body)
    clock = LoopClock()
    informer = Informer(Client(server, clock), PODS, clock)
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(1)
    assert not informer.synced
    await informer.wait_synced()
    task.cancel()
    assert (clock.monotonic(), len(informer)) == (5.0, 2)


def test_a_stream_that_the_server_closes_is_resumed_without_a_list() -> None:
    told = story(
        listing(10),
        stream(event("ADDED", "a", 11), Wait(40)),
        stream(bookmark(20), Wait(40)),
        stream(Wait(40)),
    ).play(seconds=100)
    assert told.asked == ["list 50", "watch 10", "watch 11", "watch 20"]
    assert told.server.times == [0, 0, 40, 80]
    assert told.connects == 3


@pytest.mark.parametrize(
    "gone",
    [lambda: failure(410, "Expired"), lambda: stream(expired())],
    ids=["HTTP status", "ERROR event"],
)
def test_a_version_too_old_in_either_form_leads_to_a_new_list(gone: Callable[[], Reply]) -> None:
    told = story(
        listing(10, thing("a", 1), thing("b", 2), thing("same", 3)),
        gone(),
        listing(30, thing("a", 25), thing("c", 26), thing("same", 3)),
    ).play()
    assert told.asked[:4] == ["list 50", "watch 10", "list 50", "watch 30"]
    assert told.told[3:] == [
        ("a", "1", "25", True),
        ("c", None, "26", True),
        ("b", "2", None, True),
    ]
    assert len(told.listings) == 2


def test_a_page_token_too_old_leads_to_a_list_in_one_piece() -> None:
    told = story(
        listing(10, thing("a", 1), token="t"),
        failure(410, "Expired"),
        listing(20, thing("a", 1), thing("b", 12)),
    ).play(seconds=10)
    assert told.asked == ["list 50", "page", "list 0", "watch 20"]
    assert len(told.listings) == 1
    assert told.told == [("a", None, "1", True), ("b", None, "12", True)]


def test_an_event_already_known_is_not_told_again() -> None:
    told = story(
        listing(10, thing("a", 10)),
        stream(event("MODIFIED", "a", 10), Wait()),
    ).play(seconds=10)
    assert told.told == [("a", None, "10", True)]


def test_an_object_replaced_under_its_name_goes_and_comes() -> None:
    told = story(
        listing(10, thing("a", 1, "uid-1")),
        failure(410, "Expired"),
        listing(30, thing("a", 25, "uid-2")),
    ).play()
    assert told.told[1:] == [("a", "1", None, True), ("a", None, "25", True)]


def test_a_broken_connection_is_resumed_from_the_last_event_with_growing_pauses() -> None:
    def broken() -> Reply:
        return unreachable(Unreachable("GET", "/", "reset"))

    told = story(
        listing(10),
        stream(event("ADDED", "a", 11), Unreachable("GET", "/", "reset")),
        *(broken() for _ in range(8)),
        stream(Wait()),
    ).play(seconds=600)
    assert told.asked[:3] == ["list 50", "watch 10", "watch 11"]
    assert set(told.asked[2:]) == {"watch 11"}
    times = told.server.times
    pauses = [b - a for a, b in pairwise(times[1:])][:9]
    assert 0.4 <= pauses[0] <= 0.8
    assert pauses[0] < pauses[2]
    assert all(2.5 <= pause <= 5 for pause in pauses[4:])


def test_a_server_that_goes_on_refusing_is_asked_less_and_less() -> None:
    told = story(listing(10), *(failure(403, "Forbidden") for _ in range(9)), stream(Wait()))
    told.play(seconds=600)
    pauses = [b - a for a, b in pairwise(told.server.times[1:])][:9]
    assert 0.4 <= pauses[0] <= 0.8
    assert pauses[1] < pauses[3] < pauses[5]
    assert all(15 <= pause <= 30 for pause in pauses[6:])


def test_a_server_that_is_still_starting_after_an_outage_is_asked_again_soon() -> None:
    outage = [unreachable(Unreachable("GET", "/", "refused")) for _ in range(40)]
    told = story(listing(10), *outage, failure(403, "Forbidden"), stream(Wait()))
    told.play(seconds=600)
    last, refused, opened = told.server.times[40:43]
    assert refused - last <= 5
    assert opened - refused <= 0.8


def test_a_quiet_stream_that_breaks_now_and_then_is_resumed_as_soon_each_time() -> None:
    broken = [stream(Wait(60), Unreachable("GET", "/", "reset")) for _ in range(8)]
    told = story(listing(10), *broken, stream(Wait())).play(seconds=600)
    pauses = [b - a - 60 for a, b in pairwise(told.server.times[1:10])]
    assert len(pauses) == 8
    assert all(0.4 <= pause <= 0.8 for pause in pauses)


def test_trouble_is_told_while_it_lasts() -> None:
    told = story(listing(10), failure(403, "Forbidden", "cannot watch pods")).play(seconds=0.1)
    assert told.informer is not None
    assert str(told.informer.trouble) == "GET /api/v1/pods: 403 Forbidden: cannot watch pods"
    told = story(listing(10), failure(403, "Forbidden"), stream(Wait())).play(seconds=5)
    assert told.informer is not None
    assert told.informer.trouble is None


def test_a_silent_stream_is_cut_and_resumed() -> None:
    told = story(listing(10), stream(bookmark(15), Wait()), stream(Wait(5))).play(seconds=152)
    assert told.asked == ["list 50", "watch 10", "watch 15"]
    assert told.server.times == [0, 0, 150]


def test_a_stream_that_never_ends_is_cut_after_the_time_asked_for() -> None:
    steps = [step for number in range(11, 40) for step in (bookmark(number), Wait(60))]
    told = story(listing(10), stream(*steps)).play(seconds=1000)
    asked_for = float(told.server.requests[1].query["timeoutSeconds"])
    assert 300 <= asked_for <= 600
    assert told.server.times[2] == pytest.approx(asked_for + 15)


def test_streams_that_end_at_once_are_not_reopened_in_a_hot_loop() -> None:
    told = story(listing(10), *(stream() for _ in range(1000))).play(seconds=60)
    assert len(told.asked) < 12


def test_what_keep_drops_is_neither_stored_nor_told() -> None:
    def keep(pod: Pod) -> Pod | None:
        return pod if pod.spec.resource_claims else None

    claims = {"resourceClaims": [{"name": "x"}]}
    told = story(
        listing(10, thing("a", 1), thing("b", 2, spec=claims)),
        stream(
            event("MODIFIED", "a", 11),
            event("MODIFIED", "b", 12),
            event("DELETED", "a", 13),
            Wait(),
        ),
    ).play(seconds=10, keep=keep)
    assert told.told == [("b", None, "2", True), ("b", "2", None, False)]
    assert told.names == []


def test_indexes_follow_and_keep_the_order_of_arrival() -> None:
    def on(name: str, version: int, node: str) -> dict[str, Any]:
        return thing(name, version, spec={"nodeName": node})

    told = story(
        listing(10, on("z", 1, "n1"), on("a", 2, "n1"), on("m", 3, "n2")),
        stream(
            event("MODIFIED", "z", 11, spec={"nodeName": "n1"}),
            event("MODIFIED", "m", 12, spec={"nodeName": "n1"}),
            event("DELETED", "a", 13, spec={"nodeName": "n1"}),
            Wait(),
        ),
    ).play(seconds=10, indexes={"node": lambda pod: [pod.spec.node_name]})
    assert told.informer is not None
    assert [pod.metadata.name for pod in told.informer.by_index("node", "n1")] == ["z", "m"]
    assert told.informer.by_index("node", "n2") == ()
    pod = told.informer.get("z", "ns")
    assert pod is not None
    assert pod.metadata.resource_version == "11"


def test_a_deletion_tells_the_object_as_it_was_at_the_end() -> None:
    seen: list[str] = []
    told = story(
        listing(10, thing("a", 1)),
        stream(event("DELETED", "a", 12, status={"phase": "Failed"}), Wait()),
    )

    def hear(change: Change[Pod]) -> None:
        if change.old is not None:
            seen.append(change.old.status.phase)

    told.hear = hear  # type: ignore[method-assign]
    told.play(seconds=10)
    assert seen == ["Failed"]


def test_a_watch_is_given_back_when_the_informer_is_cancelled() -> None:
    watch = stream(event("ADDED", "a", 11), Wait())
    story(listing(10), watch).play(seconds=10)
    assert watch.closed


def test_a_copy_that_is_not_brought_up_to_date_is_a_gauge_until_it_is() -> None:
    told = story(
        listing(10),
        stream(event("ADDED", "a", 11), Wait(40)),
        *[unreachable(Unreachable("GET", "/x", "refused"))] * 9,
        stream(event("ADDED", "b", 12), Wait()),
    ).play(seconds=200)
    values = told.recorder.of(Metric.WATCH_BROKEN)
    assert values[0] == 0
    assert 1 in values
    assert values[-1] == 0
    labels = [each for name, each, _ in told.recorder.metrics if name is Metric.WATCH_BROKEN]
    assert labels[0] == {"resource": "pods"}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda: stream(), id="a stream that ends at once"),
        pytest.param(lambda: failure(410, "Expired"), id="a version too old"),
    ],
)
def test_what_a_healthy_server_does_now_and_then_is_no_trouble(end: Callable[[], Reply]) -> None:
    told = story(listing(10), end(), end(), listing(30), stream(Wait())).play(seconds=30)
    assert set(told.recorder.of(Metric.WATCH_BROKEN)) <= {0}
    assert told.informer is not None
    assert told.informer.trouble is None


def test_a_checkpoint_is_asked_for_once_and_then_the_objects_are_listed_as_they_are() -> None:
    """A server that lacks the version must not delay the start."""
    told = story(failure(503, "ServiceUnavailable"), listing(10, thing("a", 1)), stream(Wait()))
    told.play(begin="9")
    asked = [request.query.get("resourceVersion", "") for request in told.server.requests]
    assert asked == ["9", "", "10"]
    assert told.names == ["a"]
