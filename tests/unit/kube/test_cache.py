"""An object that cannot be read is a problem of that one object."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from kube_in_process.virtual import run
from structlog.testing import capture_logs

from claimctl.kube.cache import MOST_LINES
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import UnreadableObject
from claimctl.kube.informer import Change, Informer
from claimctl.telemetry.face import Metric
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from tests.support.telemetry import Recorder
from tests.support.wire_server import Reply, Wait, WireServer, event, listing, ok, stream, thing

BAD: dict[str, Any] = {"spec": {"nodeName": 5}}
NAMELESS: dict[str, Any] = {"metadata": {"namespace": "ns", "name": 5}}


@dataclass
class CacheStory:
    """What an informer made of a script; lines as they would be read aloud."""

    server: WireServer
    told: list[str] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)
    lines: list[Any] = field(default_factory=list)
    informer: Informer[Pod] | None = None

    def play(
        self, seconds: float = 20.0, failing: bool = False, listed: Any = None, **options: Any
    ) -> CacheStory:
        async def main() -> None:
            clock = LoopClock()
            client = Client(self.server, clock, self.recorder, rng=Random(1))
            self.informer = Informer(client, PODS, clock, rng=Random(2), **options)
            if listed is not None:
                self.informer.on_list(listed)
            if failing:
                self.informer.subscribe(self.fail)
            self.informer.subscribe(self.hear)
            self.informer.on_unread(self.hear_unread)
            task = asyncio.create_task(self.informer.run())
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                task.result()
            task.cancel()

        with capture_logs() as self.lines:
            run(main())
        return self

    def fail(self, change: Change[Pod]) -> None:
        """A handler that cannot do with the object of one name."""
        if change.name == "bad":
            raise RuntimeError("a bug")

    def hear(self, change: Change[Pod]) -> None:
        what = "came" if change.old is None else "went" if change.new is None else "changed"
        self.told.append(f"{change.name} {what}{' unwatched' * change.relist}")

    def hear_unread(self, found: Unreadable, gone: bool) -> None:
        assert self.informer is not None
        unread = found in self.informer.unread()
        state = "gone" if gone else "unread" if unread else "no trouble"
        self.told.append(f"{found.name or 'nameless'} {state}")

    @property
    def asked(self) -> list[str]:
        return [
            f"watch {request.query['resourceVersion']}" if "watch" in request.query else "list"
            for request in self.server.requests
        ]

    @property
    def now(self) -> tuple[list[str], list[str]]:
        """The copy, and what cannot be read."""
        assert self.informer is not None
        pods = [pod.metadata.name for pod in self.informer.items()]
        return pods, [each.name for each in self.informer.unread()]

    @property
    def logged(self) -> list[tuple[str, str]]:
        return [(each["object"], each["version"]) for each in self.lines if "object" in each]


def story(*script: Reply, seconds: float = 20.0, **options: Any) -> CacheStory:
    return CacheStory(WireServer(*script)).play(seconds, **options)


def test_one_object_that_cannot_be_read_ends_neither_list_nor_watch() -> None:
    told = story(
        listing(10, thing("a", 1), thing("bad", 2, **BAD), thing("b", 3)),
        stream(event("MODIFIED", "bad", 11, **BAD), event("ADDED", "c", 12), Wait()),
    )
    assert told.asked == ["list", "watch 10"]
    assert told.told == [
        "a came unwatched", "b came unwatched", "bad unread", "bad unread", "c came",
    ]  # fmt: skip
    assert told.now == (["a", "b", "c"], ["bad"])
    assert told.recorder.of(Metric.UNREADABLE_OBJECTS)[-1] == 1


def test_an_object_that_becomes_unreadable_stays_as_it_was_and_is_never_gone() -> None:
    told = story(
        listing(10, thing("a", 1)),
        stream(event("MODIFIED", "a", 11, **BAD), Wait()),
    )
    assert told.told == ["a came unwatched", "a unread"]
    assert told.now == (["a"], ["a"])
    assert told.informer is not None
    assert told.informer.unreadable_for("a", "ns") == told.informer.unread()[0]
    assert told.informer.unreadable_for("other", "ns") is None


@pytest.mark.parametrize("known", [True, False], ids=["known before", "never read"])
def test_an_object_that_can_be_read_again_is_told_as_if_nobody_had_watched(known: bool) -> None:
    told = story(
        listing(10, *([thing("a", 1)] if known else [])),
        stream(event("MODIFIED", "a", 11, **BAD), event("MODIFIED", "a", 12), Wait()),
    )
    assert told.told[-3:] == [
        "a unread",
        "a changed unwatched" if known else "a came unwatched",
        "a no trouble",
    ]
    assert told.now == (["a"], [])
    assert told.recorder.of(Metric.UNREADABLE_OBJECTS)[-1] == 0


@pytest.mark.parametrize("known", [True, False], ids=["known before", "never read"])
def test_deleting_an_unreadable_object_clears_it(known: bool) -> None:
    told = story(
        listing(10, *([thing("a", 1)] if known else [])),
        stream(event("MODIFIED", "a", 11, **BAD), event("DELETED", "a", 12, **BAD), Wait()),
    )
    assert told.told[-2:] == (["a went unwatched"] if known else ["a unread"]) + ["a gone"]
    assert told.now == ([], [])
    assert told.recorder.of(Metric.UNREADABLE_OBJECTS)[-1] == 0


def test_of_one_never_read_before_its_end_the_end_is_told() -> None:
    told = story(
        listing(10, thing("a", 1, **BAD)),
        stream(event("DELETED", "a", 12), Wait()),
    )
    assert told.told == ["a unread", "a went", "a no trouble"]


def test_another_object_under_the_name_of_an_unreadable_one_tells_that_it_is_gone() -> None:
    told = story(
        listing(10, thing("a", 1)),
        stream(
            event("MODIFIED", "a", 11, **BAD),
            event("ADDED", "a", 12, "uid-2", **BAD),
            event("ADDED", "a", 13, "uid-3"),
            Wait(),
        ),
    )
    assert told.told == [
        "a came unwatched", "a unread", "a went unwatched", "a gone", "a unread",
        "a came unwatched", "a gone",
    ]  # fmt: skip
    assert told.now == (["a"], [])


def test_what_a_list_does_not_show_any_more_is_gone_though_it_could_not_be_read() -> None:
    too_old = {"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}
    told = story(listing(10, thing("a", 1), thing("bad", 2, **BAD)), stream(too_old), listing(20))
    assert told.told[-2:] == ["a went unwatched", "bad gone"]
    assert told.now == ([], [])


def test_a_pod_that_is_of_no_interest_once_it_can_be_read_is_no_trouble_any_more() -> None:
    told = story(
        listing(10),
        stream(event("ADDED", "a", 11, **BAD), event("MODIFIED", "a", 12), Wait()),
        keep=lambda _: None,
    )
    assert told.told == ["a unread", "a no trouble"]
    assert told.now == ([], [])


def test_while_one_has_no_name_nothing_of_the_kind_in_its_namespace_is_certain_or_gone() -> None:
    too_old = {"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}
    elsewhere = {"metadata": {"name": "x", "namespace": "other", "uid": "x"}}
    told = story(
        listing(10, thing("a", 1), elsewhere),
        stream(too_old),
        listing(20, NAMELESS),
        stream(Wait()),
    )
    assert told.told == [
        "a came unwatched", "x came unwatched", "nameless unread", "x went unwatched",
    ]  # fmt: skip
    assert told.now == (["a"], [""])
    assert told.informer is not None
    assert told.informer.unreadable_for("any", "ns") is not None
    assert told.informer.unreadable_for("x", "other") is None


def test_an_event_without_a_name_ends_no_watch_and_the_next_stream_begins_with_a_list() -> None:
    told = story(
        listing(10, thing("a", 1)),
        stream({"type": "ADDED", "object": NAMELESS}, event("ADDED", "b", 12), Wait(30)),
        listing(20, thing("b", 12)),
        seconds=40,
    )
    assert told.asked == ["list", "watch 10", "list", "watch 20"]
    assert told.told == [
        "a came unwatched", "nameless unread", "b came unwatched", "nameless no trouble",
        "a went unwatched",
    ]  # fmt: skip


def test_what_comes_after_an_event_without_a_name_may_have_had_that_version_in_between() -> None:
    elsewhere = {"type": "ADDED", "object": {"metadata": {"namespace": "other"}}}
    told = story(
        listing(10, thing("a", 1)),
        stream(elsewhere, event("MODIFIED", "a", 11)),
        seconds=1,
    )
    assert told.told == ["a came unwatched", "nameless unread", "a changed"]
    told = story(
        listing(10, thing("a", 1)),
        stream({"type": "MODIFIED", "object": NAMELESS}, event("MODIFIED", "a", 11)),
        seconds=1,
    )
    assert told.told == ["a came unwatched", "nameless unread", "a changed unwatched"]


@pytest.mark.parametrize("line", [b"?\n", b'{"type": "NEW", "object": {}}\n', b"{}\n"])
def test_a_line_of_which_nothing_can_be_made_leads_to_a_list(line: bytes) -> None:
    told = story(
        listing(10, thing("a", 1)),
        stream(line, Wait()),
        listing(20, thing("b", 12)),
        stream(Wait()),
    )
    assert told.asked == ["list", "watch 10", "list", "watch 20"]
    assert told.told == ["a came unwatched", "b came unwatched", "a went unwatched"]


def test_each_version_is_logged_once_and_never_as_a_flood() -> None:
    same = event("MODIFIED", "bad", 11, **BAD)
    told = story(listing(10, thing("bad", 2, **BAD)), stream(same, same, same, Wait()))
    assert told.logged == [("Pod ns/bad", "2"), ("Pod ns/bad", "11")]
    many = [event("MODIFIED", "bad", version, **BAD) for version in range(11, 300)]
    late: list[Any] = [Wait(100), event("MODIFIED", "bad", 500, **BAD), Wait()]
    told = story(listing(10), stream(*many, *late), seconds=200)
    assert len(told.logged) == MOST_LINES + 1
    assert told.lines[-1]["not_logged_before"] == len(many) - MOST_LINES


@pytest.mark.parametrize("namespace", ["", "ns"])
async def test_a_list_is_refused_that_is_not_whole_unless_somebody_looks_at_the_rest(
    namespace: str,
) -> None:
    page = [listing(10, thing("a", 1), thing("bad", 2, **BAD)) for _ in range(3)]
    client = Client(WireServer(*page), LoopClock())
    path = PODS.path(namespace)
    with pytest.raises(UnreadableObject, match=f"GET {path}: .*Pod ns/bad .*nodeName"):
        await client.list(PODS, namespace)
    listed = await client.list(PODS, namespace, partial=True)
    paged = [page async for page in client.pages(PODS, namespace)]
    for found in (listed, *paged):
        assert [pod.metadata.name for pod in found.items] == ["a"]
        assert [each.name for each in found.unreadable] == ["bad"]


async def test_a_get_says_which_object_cannot_be_read() -> None:
    client = Client(WireServer(ok(thing("a", 1, **BAD))), LoopClock())
    with pytest.raises(UnreadableObject, match=r"Expected `str`.*nodeName") as error:
        await client.get(PODS, "a", "ns")
    assert (error.value.unreadable.name, error.value.unreadable.uid) == ("a", "uid-a")


def refuse_bad(pod: Pod) -> Pod:
    if pod.metadata.labels == {"is": "bad"}:
        raise RecursionError("too deep")
    return pod


def labelled(name: str, version: int) -> dict[str, Any]:
    pod = thing(name, version)
    pod["metadata"]["labels"] = {"is": "bad"}
    return pod


def label_of(pod: Pod) -> list[str]:
    return [refuse_bad(pod).metadata.name]


WAYS: dict[str, dict[str, Any]] = {
    "keep": {"keep": refuse_bad},
    "index": {"indexes": {"name": lambda pod: [pod.metadata.name], "label": label_of}},
}
ways = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


@ways
def test_an_exception_for_one_object_is_a_problem_of_that_object(options: dict[str, Any]) -> None:
    told = story(
        listing(10, thing("a", 1), labelled("bad", 2), thing("b", 3)),
        stream({"type": "MODIFIED", "object": labelled("a", 11)}, event("ADDED", "c", 12), Wait()),
        **options,
    )
    assert told.asked == ["list", "watch 10"]
    assert told.told == [
        "a came unwatched", "bad unread", "b came unwatched", "a unread", "c came",
    ]  # fmt: skip
    assert told.now == (["a", "b", "c"], ["bad", "a"])
    assert told.informer is not None
    assert told.informer.unread()[0].problem == "RecursionError: too deep"
    assert told.recorder.of(Metric.UNREADABLE_OBJECTS)[-1] == 2
    assert told.logged == [("Pod ns/bad", "2"), ("Pod ns/a", "11")]
    assert all(isinstance(line["exc_info"], RecursionError) for line in told.lines)


@ways
def test_after_an_exception_the_next_version_counts(options: dict[str, Any]) -> None:
    told = story(
        listing(10, labelled("bad", 2)),
        stream(event("MODIFIED", "bad", 11), Wait()),
        **options,
    )
    assert told.told == ["bad unread", "bad came unwatched", "bad no trouble"]
    assert told.now == (["bad"], [])


def test_an_index_that_fails_leaves_nothing_of_the_object_in_another() -> None:
    told = story(
        listing(10, labelled("bad", 1), thing("a", 2)),
        stream({"type": "MODIFIED", "object": labelled("a", 11)}, Wait()),
        **WAYS["index"],
    )
    assert told.informer is not None
    assert told.informer.by_index("name", "bad") == ()
    for index in ("name", "label"):
        (pod,) = told.informer.by_index(index, "a")
        assert (pod.metadata.resource_version, pod.metadata.labels) == ("2", None)


def test_an_object_whose_last_version_is_too_much_is_gone_and_nobody_knows_how() -> None:
    told = story(
        listing(10, thing("a", 1)),
        stream({"type": "DELETED", "object": labelled("a", 11)}, event("ADDED", "b", 12), Wait()),
        **WAYS["keep"],
    )
    assert told.told == ["a came unwatched", "a gone", "a went", "b came"]
    assert told.now == (["b"], [])


def test_a_handler_that_fails_takes_the_change_from_no_other() -> None:
    told = story(
        listing(10, thing("bad", 1), thing("a", 2)),
        stream(
            event("MODIFIED", "bad", 11),
            event("MODIFIED", "a", 12),
            event("DELETED", "bad", 13),
            event("MODIFIED", "a", 14),
            Wait(),
        ),
        failing=True,
    )
    assert told.asked == ["list", "watch 10"]
    assert told.told == [
        *("bad came unwatched", "bad unread", "a came unwatched"),
        *("bad changed unwatched", "bad unread", "bad no trouble", "a changed"),
        *("bad went", "bad gone", "bad no trouble", "a changed"),
    ]
    assert told.now == (["a"], [])
    assert {line["problem"] for line in told.lines} == {"RuntimeError: a bug"}


def test_a_handler_of_unreadable_objects_that_fails_ends_nothing() -> None:
    told = CacheStory(
        WireServer(listing(10, thing("bad", 1, **BAD), thing("a", 2)), stream(Wait()))
    )

    def fail(found: Unreadable, gone: bool) -> None:
        raise RuntimeError(f"a bug with {found.name}")

    told.hear_unread = fail  # type: ignore[method-assign]  # a handler that fails
    told.play()
    assert told.told == ["a came unwatched"]
    assert told.now == (["a"], ["bad"])


def test_a_bug_that_is_not_of_one_object_leads_to_a_list() -> None:
    failures = [RuntimeError("a bug")]
    told = CacheStory(
        WireServer(listing(10, thing("a", 1)), listing(20, thing("a", 1)), stream(Wait()))
    )

    def listed(before: str, version: str) -> None:
        if failures:
            raise failures.pop()
        told.told.append(f"listed {before or 'first'} {version}")

    told.play(listed=listed)
    assert told.asked == ["list", "list", "watch 20"]
    assert told.told == ["a came unwatched", "listed first 20"]
    assert [line["event"] for line in told.lines if line["log_level"] == "error"] == [
        "watch failed by a bug"
    ]
