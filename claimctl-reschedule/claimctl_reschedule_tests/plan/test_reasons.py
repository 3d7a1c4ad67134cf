"""Every reason has a meaning, and no reason of a hold has the same name."""

from __future__ import annotations

from claimctl.reservation.facts.reasons import Reason
from claimctl_reschedule.plan.reasons import MEANINGS, Ground


def test_every_reason_has_one_sentence() -> None:
    assert set(MEANINGS) == set(Ground)
    assert [text for text in MEANINGS.values() if not text.endswith(".")] == []


def test_a_name_means_one_thing() -> None:
    assert {str(each) for each in Ground} & {str(each) for each in Reason} == set()
