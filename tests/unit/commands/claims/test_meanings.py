"""Every reason has a meaning, and every problem has a remedy."""

from __future__ import annotations

from claimctl.commands.claims.meanings import MEANINGS
from claimctl.controller.events import WARNINGS
from claimctl.reservation.facts.reasons import Reason


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
    for reason, each in MEANINGS.items():
        assert each.meaning.endswith("."), reason
        assert each.remedy.endswith(".") or not each.remedy, reason


def test_every_warning_says_what_to_do() -> None:
    assert {reason for reason in WARNINGS if not MEANINGS[reason].remedy} == set()


def test_no_two_reasons_mean_the_same() -> None:
    told = [each.meaning for each in MEANINGS.values()]
    assert len(set(told)) == len(told)
