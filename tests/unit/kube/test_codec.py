"""Lists and lines as they come over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from claimctl.kube.codec import Listing, WatchEvent, decode_page, lines, watch_events
from claimctl.kube.errors import Gone, LostEvent
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    DOWNGRADEPLANS,
    NODES,
    PODS,
    RESOURCECLAIMS,
    RESOURCESLICES,
    Resource,
)
from claimctl.wire.unreadable import Unreadable
from tests.support.wire_server import thing


def collected(*chunks: bytes) -> list[bytes]:
    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def main() -> list[bytes]:
        return [line async for line in lines(body())]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b", b"\n", b"c\n"], [b"ab", b"c"]),
        ([b"a\nb", b"c\nd\n"], [b"a", b"bc", b"d"]),
        ([b"a\n\n \nb\n"], [b"a", b"b"]),
        ([b"a\ncut o"], [b"a"]),
        ([], []),
    ],
)
def test_lines_are_whole_however_they_were_chopped(
    chunks: list[bytes], expected: list[bytes]
) -> None:
    assert collected(*chunks) == expected


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="a line has more than 16 MB"):
        collected(b"a\n", *[b"x" * 1_000_000] * 17)


def test_a_list_without_items_may_say_null() -> None:
    page = decode_page(PODS, b'{"metadata":{"resourceVersion":"7"},"items":null}')
    assert page == Listing((), "7")


def test_a_page_says_how_to_go_on() -> None:
    meta = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}
    page = decode_page(PODS, json.dumps({"metadata": meta, "items": [thing("a", 1)]}).encode())
    assert [pod.metadata.name for pod in page.items] == ["a"]
    assert page.continue_token == "more"


def page_of(*items: object) -> Listing[Pod]:
    meta = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}
    return decode_page(PODS, json.dumps({"metadata": meta, "items": items}).encode())


def test_one_object_that_cannot_be_read_leaves_its_page_as_it_is() -> None:
    bad = thing("bad", 2, spec={"nodeName": 5})
    page = page_of(thing("a", 1), bad, thing("b", 3))
    assert [pod.metadata.name for pod in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_token) == ("7", "more")
    assert page.unreadable == (
        Unreadable(
            PODS,
            "Expected `str`, got `int` - at `$.spec.nodeName`",
            "ns",
            "bad",
            "uid-bad",
            "2",
            b'{"spec":{"nodeName":5}}',
        ),
    )


@pytest.mark.parametrize(
    ("item", "said", "identified"),
    [
        (thing("x", 2, spec=[]), "Pod ns/x", True),
        ({"metadata": {"namespace": "ns", "name": 5}}, "(ns)", False),
        ({"metadata": {"namespace": "ns", "name": "x", "labels": 5}}, "(ns/x)", False),
        ({"metadata": {"name": "x", "uid": "u", "namespace": {}}}, "(x)", False),
        ({"metadata": "x"}, "a Pod whose metadata cannot be read cannot be read", False),
        ({}, "metadata.name is missing", False),
        (None, "cannot be read", False),
        (7, "cannot be read", False),
    ],
)
def test_what_can_be_said_of_an_object_depends_on_what_can_be_read(
    item: object, said: str, identified: bool
) -> None:
    page = page_of(thing("a", 1), item, thing("b", 3))
    assert [pod.metadata.name for pod in page.items] == ["a", "b"]
    (found,) = page.unreadable
    assert said in found.describe()
    assert found.identified == identified


@pytest.mark.parametrize("broken", [b'"\xff\xfe"', b'{"nodeName":"\xff"}', b"1e999"])
def test_bytes_that_are_no_text_are_the_trouble_of_one_object(broken: bytes) -> None:
    good, bad = json.dumps(thing("a", 1)).encode(), json.dumps(thing("bad", 2, spec="?")).encode()
    body = b'{"metadata":{},"items":[%b,%b]}' % (good, bad.replace(b'"?"', broken))
    page = decode_page(PODS, body)
    assert [pod.metadata.name for pod in page.items] == ["a"]
    assert [str(each) for each in page.unreadable] == ["Pod ns/bad"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"[" * 3000, b'{"items": {}}', b'{"metadata": 5}', b"null"]
)
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_page(PODS, body)


def events_of(resource: Resource[Any], *lines: object) -> list[WatchEvent[Any]]:
    async def body() -> AsyncIterator[bytes]:
        for line in lines:
            yield json.dumps(line).encode() + b"\n"

    async def main() -> list[WatchEvent[Any]]:
        found = watch_events("GET", "/x", resource, body(), 300)
        return [event async for event in found]

    return asyncio.run(main())


@pytest.mark.parametrize("resource", [PODS, RESOURCECLAIMS, RESOURCESLICES, NODES, DOWNGRADEPLANS])
def test_an_error_is_raised_for_kinds_that_look_like_a_status_too(resource: Resource[Any]) -> None:
    status = {"kind": "Status", "metadata": {"name": "x"}, "code": 410, "message": "too old"}
    with pytest.raises(Gone):
        events_of(resource, {"type": "ERROR", "object": status})


def test_a_bookmark_of_a_named_object_is_no_change() -> None:
    line = {"type": "BOOKMARK", "object": thing("a", 7)}
    assert events_of(PODS, line) == [WatchEvent("BOOKMARK", None, "7")]


def test_an_unknown_type_of_event_is_refused_although_its_object_can_be_read() -> None:
    with pytest.raises(LostEvent, match="unknown watch event type 'PAINTED'"):
        events_of(PODS, {"type": "PAINTED", "object": thing("a", 7)})


def test_events_are_read_with_nulls_without_a_name_and_with_wrong_types() -> None:
    null = {**thing("a", 1), "spec": {"nodeName": None, "resourceClaims": None}}
    wrong = {**thing("b", 2), "spec": {"nodeName": 5}}
    nameless = {"metadata": {"uid": "u", "resourceVersion": "3"}}
    found = events_of(
        PODS, *({"type": "ADDED", "object": each} for each in (null, wrong, nameless))
    )
    assert [each.resource_version for each in found] == ["1", "2", "3"]
    assert [each.unreadable is None for each in found] == [True, False, False]
    pod: Any = found[0].object
    assert pod.spec.node_name == ""
