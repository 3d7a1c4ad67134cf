"""A small part of the random users in every test run; the commit selects the seed."""

from __future__ import annotations

from labs.part import again, part
from labs.sticky.lab import play
from labs.sticky.users import StickySize

SIZE = StickySize(sets=3, ordinals=3, jobs=1, actions=15)


def test_each_ordinal_keeps_its_device_whatever_users_do() -> None:
    chosen = part()
    run = play(chosen, SIZE)
    assert run.good, "\n".join([again(chosen), run.shown()])
    assert run.counts["pods bound"]
