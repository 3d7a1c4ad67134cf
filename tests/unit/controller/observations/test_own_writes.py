"""Whether a cache shows what this process wrote, and which versions are waited for."""

from __future__ import annotations

from claimctl.controller.observations.own_writes import PATIENCE_SECONDS, OwnWrites
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import CLAIM, NAMESPACE
from tests.support.hand_clock import HandClock


def meta(version: str) -> ObjectMeta:
    return ObjectMeta(name=CLAIM, namespace=NAMESPACE, resource_version=version)


def lags(fresh: OwnWrites, cached: ObjectMeta | None) -> bool:
    return fresh.lags(RESOURCECLAIMS, NAMESPACE, CLAIM, cached)


def test_a_cache_lags_until_it_shows_what_was_written_or_more() -> None:
    fresh = OwnWrites(HandClock())
    assert not lags(fresh, meta("9"))
    fresh.wrote(RESOURCECLAIMS, meta("10"))
    assert lags(fresh, None)
    assert lags(fresh, meta("9"))
    assert not lags(fresh, meta("11"))
    assert not lags(fresh, meta("9"))


def test_only_the_version_of_a_hurried_write_is_awaited() -> None:
    fresh = OwnWrites(HandClock())
    fresh.wrote(RESOURCECLAIMS, meta("10"))
    assert not fresh.awaited(RESOURCECLAIMS, meta("10"))
    fresh.wrote(RESOURCECLAIMS, meta("11"), hurried=True)
    assert fresh.awaited(RESOURCECLAIMS, meta("11"))
    assert not fresh.awaited(RESOURCECLAIMS, meta("12"))


def test_a_reconcile_that_waits_for_a_write_goes_on_with_its_event() -> None:
    fresh = OwnWrites(HandClock())
    fresh.wrote(RESOURCECLAIMS, meta("10"))
    assert lags(fresh, meta("9"))
    assert fresh.awaited(RESOURCECLAIMS, meta("10"))
    assert not fresh.awaited(RESOURCECLAIMS, meta("11"))


def test_versions_that_are_no_numbers_have_to_be_equal() -> None:
    fresh = OwnWrites(HandClock())
    fresh.wrote(RESOURCECLAIMS, meta("b"))
    assert lags(fresh, meta("c"))
    assert not lags(fresh, meta("b"))


def test_patience_with_a_cache_has_an_end() -> None:
    clock = HandClock()
    fresh = OwnWrites(clock)
    fresh.wrote(RESOURCECLAIMS, meta("10"))
    clock.time = PATIENCE_SECONDS
    assert not lags(fresh, meta("9"))


def test_nothing_waits_for_the_version_of_the_last_write_but_a_reconcile_that_came_before() -> None:
    fresh = OwnWrites(HandClock())
    fresh.wrote(RESOURCECLAIMS, meta("10"))
    assert not fresh.was_last(RESOURCECLAIMS, meta("10"))
    fresh.wrote(RESOURCECLAIMS, meta("11"), last=True)
    assert fresh.was_last(RESOURCECLAIMS, meta("11"))
    assert not fresh.was_last(RESOURCECLAIMS, meta("12"))
    assert lags(fresh, meta("10"))
    assert not fresh.was_last(RESOURCECLAIMS, meta("11"))
