"""Whose annotation counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.reservation.facts.ancestors import (
    OWN,
    Ancestor,
    AnnotationStanding,
    Authority,
    describe_authority,
    who_decides,
)

NAME = "claimctl.io/reserve"
PLAIN = Ancestor("batch.example", "Gang", "train", "u-gang")
ASKS = replace(PLAIN, annotations={NAME: "slice"})
COPIES = Ancestor("lws.example", "Leaders", "serve", "u-leaders", copies=True)
COPIED = replace(COPIES, annotations={NAME: "*"})
UNREAD = Ancestor("ray.example", "Ray", "tune", "u-ray", problem="no right", copies=True)
HELD = replace(UNREAD, holds=True)
UNSEEN = replace(COPIES, seen=False)


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([], OWN),
        ([PLAIN], OWN),
        ([ASKS], Authority(AnnotationStanding.ABOVE, ASKS)),
        # its controller takes not all copies back when the annotation goes
        ([COPIES], Authority(AnnotationStanding.ABOVE, COPIES)),
        ([COPIED], Authority(AnnotationStanding.ABOVE, COPIED)),
        # the highest one decides, also about the annotation of the one below
        ([COPIED, ASKS], Authority(AnnotationStanding.ABOVE, ASKS)),
        ([ASKS, COPIES], Authority(AnnotationStanding.ABOVE, COPIES)),
        ([ASKS, PLAIN], Authority(AnnotationStanding.ABOVE, ASKS)),
        # what cannot be read cannot hold
        ([UNREAD], Authority(AnnotationStanding.UNREAD, UNREAD)),
        ([UNREAD, ASKS], Authority(AnnotationStanding.ABOVE, ASKS)),
        ([PLAIN, UNREAD], Authority(AnnotationStanding.UNREAD, UNREAD)),
        # it was read before, and its hold stands
        ([HELD], Authority(AnnotationStanding.OPEN)),
        # nothing is decided before all are seen
        ([UNSEEN], Authority(AnnotationStanding.OPEN)),
        ([ASKS, UNSEEN], Authority(AnnotationStanding.OPEN)),
    ],
)
def test_who_decides(above: list[Ancestor], expected: Authority) -> None:
    assert who_decides(NAME, above) == expected


@pytest.mark.parametrize(
    ("authority", "part"),
    [
        (OWN, ""),
        (Authority(AnnotationStanding.OPEN), ""),
        (Authority(AnnotationStanding.ABOVE, ASKS), "Gang train, to which it belongs, has it, too"),
        (Authority(AnnotationStanding.ABOVE, COPIES), "the controller of Leaders serve"),
        (
            Authority(AnnotationStanding.UNREAD, UNREAD),
            "may have claimctl.io/reserve, too: no right",
        ),
    ],
)
def test_what_is_said(authority: Authority, part: str) -> None:
    text = describe_authority(authority, NAME)
    assert part in text
    assert bool(text) is bool(part)


ancestors = st.lists(
    st.sampled_from([PLAIN, ASKS, COPIES, COPIED, UNREAD, HELD, UNSEEN]), max_size=6
)


@given(ancestors)
def test_at_most_one_object_of_a_chain_holds(above: list[Ancestor]) -> None:
    """Of a chain of annotated objects that can be read, only the highest makes a hold."""
    readable = [each for each in above if each in (ASKS, COPIED)]
    chain = [ASKS, *readable]
    counting = [
        index
        for index in range(len(chain))
        if who_decides(NAME, chain[index + 1 :]).standing is AnnotationStanding.OWN
    ]
    assert counting == [len(chain) - 1]


@given(ancestors)
def test_one_who_decides_is_read_and_nobody_above_decides(above: list[Ancestor]) -> None:
    authority = who_decides(NAME, above)
    if authority.standing is AnnotationStanding.ABOVE:
        assert authority.ancestor is not None
        assert authority.ancestor.decides(NAME)
        rest = above[len(above) - above[::-1].index(authority.ancestor) :]
        assert who_decides(NAME, rest).standing in (
            AnnotationStanding.OWN,
            AnnotationStanding.UNREAD,
            AnnotationStanding.OPEN,
        )
    if authority.standing is AnnotationStanding.OWN:
        assert not any(each.decides(NAME) for each in above)


@given(ancestors)
def test_a_copy_never_comes_to_life_when_the_annotation_above_goes(above: list[Ancestor]) -> None:
    """Below a kind that copies, nothing holds by itself, whatever the annotations are."""
    chain = [*above, COPIED]
    bare = [replace(each, annotations={}) for each in chain]
    for version in (chain, bare):
        assert who_decides(NAME, version).standing in (
            AnnotationStanding.ABOVE,
            AnnotationStanding.OPEN,
        )
