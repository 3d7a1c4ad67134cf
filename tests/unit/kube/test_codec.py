"""Lists and lines as they come over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from claimctl.kube.codec import Listing, decode_page, lines
from claimctl.wire.resources import PODS
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


def test_a_list_without_items_may_say_null() -> None:
    page = decode_page(PODS, b'{"metadata":{"resourceVersion":"7"},"items":null}')
    assert page == Listing((), "7")


def test_a_page_says_how_to_go_on() -> None:
    meta = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}
    page = decode_page(PODS, json.dumps({"metadata": meta, "items": [thing("a", 1)]}).encode())
    assert [pod.metadata.name for pod in page.items] == ["a"]
    assert (page.continue_token, page.remaining) == ("more", 3)


def test_one_object_of_a_wrong_shape_is_named() -> None:
    items = [thing("good", 1), thing("bad", 2, spec={"nodeName": 5})]
    body = json.dumps({"metadata": {}, "items": items}).encode()
    with pytest.raises(msgspec.ValidationError, match=r"ns/bad: .*nodeName"):
        decode_page(PODS, body)
