"""A few states in every test run; and what breaks the judgement is found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest

from claimctl.commands.claims import judgement
from claimctl.commands.orphans import scan
from claimctl.reservation.facts.slim_pods import slim_pod
from labs.agreement import playing
from labs.findings import Tally
from labs.runs import play_all


def play(name: str, seeds: Iterable[int]) -> Tally:
    return play_all(partial(playing.play, name), seeds)


WAITING = (20, 8, 11, 21)
"""Seeds of torture in whose states pods wait: for a kubelet, a claim that is missing, a node."""
DEDICATED = (5, 7)
"""Seeds of clusters in good order, whose nodes have a taint that the pods tolerate."""


def test_nobody_is_calm_about_pods_that_wait() -> None:
    seen = play("torture", WAITING)
    assert [run.texts() for run in seen.bad] == []
    assert seen.counts["torture: with pods that wait"] >= len(WAITING) - 1


def test_nobody_reports_a_problem_in_a_cluster_in_good_order() -> None:
    seen = play("good order", (*range(3), *DEDICATED))
    assert [run.texts() for run in seen.bad] == []
    assert seen.counts["good users: in good order"] == len(DEDICATED) + 3


def test_a_judgement_that_overlooks_waiting_pods_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "waiting_text", lambda *_: "")
    (bad, *_) = play("torture", WAITING[:1]).bad
    assert any("pods wait for slice, and it says of 0" in text for text in bad.texts())


def test_a_doctor_that_looks_at_less_than_get_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_slim", slim_pod)
    (bad,) = play("good order", DEDICATED[:1]).bad
    assert any("doctor in good order: held-devices slice" in text for text in bad.texts())
