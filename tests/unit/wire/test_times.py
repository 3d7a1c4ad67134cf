"""Times within the limits of what can be computed with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from claimctl.wire.base import Wire
from claimctl.wire.coordination import Lease, LeaseSpec, renewed_at
from claimctl.wire.meta import Condition
from claimctl.wire.times import EARLIEST, LATEST, MOST_SECONDS, moment
from tests.support import extremes


@pytest.mark.parametrize("text", [None, *extremes.TIMES, *extremes.TEXTS, "yesterday"])
def test_a_text_without_a_possible_time_has_none(text: str | None) -> None:
    assert moment(text) is None
    assert renewed_at(Lease(spec=LeaseSpec(renew_time=text))) == EARLIEST


def test_a_possible_time_is_read_in_its_zone() -> None:
    assert moment("2026-01-02T03:04:05.000006Z") == datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
    assert moment("2026-01-02T05:04:05+02:00") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert moment("1970-01-01T00:00:00Z") == EARLIEST


def test_sums_of_possible_values_are_possible() -> None:
    second = timedelta(seconds=1)
    assert LATEST + timedelta(seconds=MOST_SECONDS) + timedelta(days=365) > LATEST - second
    assert EARLIEST - timedelta(seconds=MOST_SECONDS) < EARLIEST


@pytest.mark.parametrize("time", [EARLIEST - timedelta(seconds=1), LATEST])
def test_a_struct_takes_no_other_time(time: datetime) -> None:
    with pytest.raises(ValueError, match="between 1970 and 9000"):
        Condition(last_transition_time=time)


def test_what_a_struct_did_before_it_still_does() -> None:
    class Noted(Wire, frozen=True, kw_only=True):
        text: str = ""

        def __post_init__(self) -> None:
            if self.text == "wrong":
                raise ValueError("wrong")

    class Timed(Noted, frozen=True, kw_only=True):
        time: datetime | None = None

    with pytest.raises(ValueError, match="wrong"):
        Timed(text="wrong")
    with pytest.raises(ValueError, match="between 1970 and 9000"):
        Timed(time=LATEST)
