"""Objects that are nested more deeply than the decoder reads, beside others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.codec import WatchEvent, decode_page, watch_events
from claimctl.kube.errors import LostEvent, UnreadableObject
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.nesting import TooDeep
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl.wire.unreadable import Unreadable
from tests.support import extremes
from tests.support.wire_server import Reply, WireServer, thing

BEYOND = 10_000
"""No version of Python has a decoder that reads so many levels."""
NESTS = {"lists": ("[", "]"), "objects": ('{"a":', "}")}
TRICKY = '[[{"}]\\" \\\\'
"""A text with brackets, quotes and backslashes."""


def nested(levels: int, nest: str, within: str = "1") -> str:
    opening, closing = NESTS[nest]
    return opening * levels + within + closing * levels


def claim(name: str, parameters: str = "{}") -> str:
    spec = {"devices": {"config": [{"opaque": {"driver": TRICKY, "parameters": "<here>"}}]}}
    body = thing(name, 2, spec=spec, status={"text": TRICKY})
    return json.dumps(body).replace('"<here>"', parameters)


def page(*items: str) -> bytes:
    meta = '{"resourceVersion":"7","continue":"more"}'
    return f'{{"metadata":{meta},"items":[{",".join(items)}]}}'.encode()


nests = pytest.mark.parametrize("nest", NESTS)
depths = pytest.mark.parametrize("levels", extremes.DEPTHS)


@nests
@depths
@pytest.mark.parametrize("at", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_deep_object_leaves_its_page_as_it_is(levels: int, nest: str, at: int) -> None:
    items = [claim("a"), claim("b")]
    items.insert(at, claim("deep", nested(levels, nest)))
    found = decode_page(RESOURCECLAIMS, page(*items))
    assert (found.resource_version, found.continue_token) == ("7", "more")
    names = [each.metadata.name for each in found.items]
    assert [name for name in names if name != "deep"] == ["a", "b"]
    assert [str(each) for each in found.unreadable] == ["ResourceClaim ns/deep"] * (3 - len(names))
    assert levels > 500 or not found.unreadable
    assert levels < BEYOND or found.unreadable


@nests
def test_whether_an_object_can_be_read_does_not_depend_on_the_others(nest: str) -> None:
    """500 levels, which every decoder reads, beside 10,000."""
    deep, beyond = claim("deep", nested(500, nest)), claim("beyond", nested(BEYOND, nest))
    found = decode_page(RESOURCECLAIMS, page(deep, beyond))
    assert [each.metadata.name for each in found.items] == ["deep"]
    (unread,) = found.unreadable
    assert unread.describe() == (
        "ResourceClaim ns/beyond cannot be read: the JSON is nested too deeply"
    )


@nests
def test_brackets_in_texts_do_not_count(nest: str) -> None:
    text = json.dumps(nested(BEYOND, nest, TRICKY))
    found = decode_page(RESOURCECLAIMS, page(claim("text", text), claim("a")))
    assert [each.metadata.name for each in found.items] == ["text", "a"]
    again = page(claim("text", text), claim("deep", nested(BEYOND, nest, text)), claim("a"))
    found = decode_page(RESOURCECLAIMS, again)
    assert [each.metadata.name for each in found.items] == ["text", "a"]


def test_a_page_that_is_not_whole_is_no_list() -> None:
    whole = page(claim("a"), claim("deep", nested(BEYOND, "lists")), claim("b"))
    for missing in (1, 2, 3, 100, 200, 300, BEYOND, len(whole) - 500):
        with pytest.raises(msgspec.DecodeError):
            decode_page(RESOURCECLAIMS, whole[:-missing])


def test_a_page_whose_items_are_missing_or_no_list_is_none() -> None:
    deep = nested(BEYOND, "lists")
    for body in (f'{{"metadata":{deep},"items":[]}}', f'{{"metadata":{{}},"a":{deep}}}'):
        with pytest.raises(msgspec.DecodeError):
            decode_page(RESOURCECLAIMS, body.encode())


def events(*lines: str) -> list[WatchEvent[ResourceClaim]]:
    async def body() -> AsyncIterator[bytes]:
        for line in lines:
            yield line.encode() + b"\n"

    async def main() -> list[Any]:
        return [event async for event in watch_events("GET", "/x", RESOURCECLAIMS, body(), 60)]

    return asyncio.run(main())


@nests
@depths
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_a_deep_object_is_one_event_of_its_watch(levels: int, nest: str, type_: str) -> None:
    objects = (claim("a"), claim("deep", nested(levels, nest)), claim("b"))
    first, deep, last = events(*(f'{{"type":"{type_}","object":{each}}}' for each in objects))
    assert first.object is not None
    assert last.object is not None
    assert (deep.type, deep.resource_version) == (type_, "2")
    assert (deep.object is None) == (deep.unreadable is not None)
    assert levels < BEYOND or str(deep.unreadable) == "ResourceClaim ns/deep"


def test_a_deep_line_that_is_no_event_is_lost() -> None:
    with pytest.raises(LostEvent, match="the JSON is nested too deeply"):
        events(f'{{"object":{nested(BEYOND, "lists")}}}')


@nests
def test_an_unreadable_object_tells_what_it_can(nest: str) -> None:
    deep = nested(2000, nest)
    raw = f'{{"a":{deep},"metadata":{{"a":{deep},"uid":"u","name":"x"}},"spec":{{"nodeName":"n"}}}}'
    unread = Unreadable.of(RESOURCECLAIMS, raw.encode(), "deep")
    assert (unread.name, unread.uid, unread.namespace) == ("x", "u", "")
    assert unread.read("spec.nodeName", str, "") == "n"
    assert unread.read("spec.resourceClaimName", str, "none") == "none"
    assert len(unread.raw) < 100


@pytest.mark.parametrize(
    "spec",
    [
        *("5", '"text"', "[]", '{"nodeName":5}', '{"nodeName":["n"]}'),
        f'{{"nodeName":"{"n" * 100_000}"}}',
        f'{{"nodeName":"n","text":"{"x" * 70_000}","free":{nested(BEYOND, "objects")}}}',
        '{"nodeName":',
    ],
)
def test_what_cannot_be_read_is_not_taken_for_absent(spec: str) -> None:
    raw = f'{{"metadata":{{"uid":"u","name":"x"}},"spec":{spec}}}'
    unread = Unreadable.of(RESOURCECLAIMS, raw.encode(), "wrong")
    assert unread.read("spec.nodeName", str, "") is None
    assert len(unread.raw) < 100


def test_a_member_with_a_strange_name_hides_no_other() -> None:
    deep = nested(BEYOND, "lists")
    meta = '"metadata":{"namespace":"ns","name":"x","uid":"u"}'
    raw = f'{{"metadata:":5,"a\\"metadata":5,"deep":{deep},{meta}}}'
    assert str(Unreadable.of(RESOURCECLAIMS, raw.encode(), "deep")) == "ResourceClaim ns/x"


async def test_a_deep_object_that_is_read_alone_is_named() -> None:
    server = WireServer(Reply(body=[claim("deep", nested(BEYOND, "lists")).encode()]))
    with pytest.raises(UnreadableObject, match="ns/deep cannot be read: the JSON is nested too"):
        await Client(server, LoopClock()).get(RESOURCECLAIMS, "deep", "ns")


@pytest.mark.parametrize("null", ["", '"metadata":{"name":"x","labels":null},"status":null,'])
def test_the_error_says_what_is_wrong(null: str) -> None:
    with pytest.raises(TooDeep, match="the JSON is nested too deeply"):
        decode(f'{{{null}"x":{nested(BEYOND, "lists")}}}', ResourceClaim)


@pytest.mark.parametrize("text", extremes.NO_TEXTS)
@pytest.mark.parametrize("at", [0, 1, 2], ids=["first", "middle", "last"])
def test_an_object_that_is_not_json_leaves_its_page_as_it_is(text: str, at: int) -> None:
    bad = f'{{"metadata":{{"namespace":"ns","name":"bad","uid":"u","x":{text}}},"spec":{{}}}}'
    items = [claim("a"), claim("b")]
    items.insert(at, bad)
    body = page(*items).decode().encode("latin-1")
    found = decode_page(RESOURCECLAIMS, body)
    names = [each.metadata.name for each in found.items]
    assert [name for name in names if name != "bad"] == ["a", "b"]
    assert [str(each) for each in found.unreadable] == ["ResourceClaim ns/bad"] * (3 - len(names))
    assert len(names) == (3 if text == '"\xff"' else 2)


@pytest.mark.parametrize("text", extremes.NO_TEXTS)
def test_an_object_that_is_not_json_is_one_event_of_its_watch(text: str) -> None:
    bad = f'{{"metadata":{{"namespace":"ns","name":"bad","uid":"u","x":{text}}},"spec":{{}}}}'
    first, middle, last = events(
        *(f'{{"type":"ADDED","object":{each}}}' for each in (claim("a"), bad, claim("b")))
    )
    assert first.object is not None
    assert last.object is not None
    assert middle.object is not None or str(middle.unreadable) == "ResourceClaim ns/bad"
