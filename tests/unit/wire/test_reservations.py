"""ClaimReservations as they are read and written."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import decode, encode, to_plain
from claimctl.wire.reservations import ClaimReservationSpec
from claimctl.wire.times import MOST_SECONDS


@pytest.mark.parametrize(
    ("given", "seconds", "written"),
    [
        ({}, 60, {}),
        ({"reallocateTimeoutSeconds": None}, None, {"reallocateTimeoutSeconds": None}),
        ({"reallocationPolicy": "Never"}, None, {"reallocationPolicy": "Never"}),
        ({"reallocationPolicy": "Weekly"}, None, {"reallocationPolicy": "Weekly"}),
        (
            {"reallocationPolicy": "Never", "reallocateTimeoutSeconds": 0},
            None,
            {"reallocateTimeoutSeconds": 0, "reallocationPolicy": "Never"},
        ),
    ],
)
def test_the_word_never_and_null_mean_never_to_reallocate(
    given: dict[str, Any], seconds: int | None, written: dict[str, Any]
) -> None:
    spec = decode(encode(given), ClaimReservationSpec)
    assert spec.reallocate_after_seconds == seconds
    assert to_plain(spec) == written


def test_what_a_later_release_has_stored_is_read() -> None:
    """The server checks the limits. A controller must not lose a claim because they have grown.
    A number with which it cannot compute counts as the largest with which it can."""
    stored = {"retentionPolicy": "Weekly", "idleTimeoutSeconds": 10**12, "added": True}
    spec = decode(encode(stored), ClaimReservationSpec)
    assert (spec.retention_policy, spec.idle_timeout_seconds) == ("Weekly", MOST_SECONDS)
