"""Settings are checked before anything starts."""

from __future__ import annotations

import pytest

from claimctl.controller.settings import BadSettings, Settings
from claimctl.reservation.facts.snapshot import Rules


@pytest.mark.parametrize(
    ("version", "cleans", "looks"),
    [
        ((1, 33), False, False),
        ((1, 34), False, True),
        ((1, 35), False, True),
        ((1, 36), True, True),
    ],
)
def test_rules_follow_from_settings_and_what_was_detected(
    version: tuple[int, int], cleans: bool, looks: bool
) -> None:
    settings = Settings.checked(identity="one", settle_seconds=2, dead_reference_seconds=3)
    assert settings.rules("native", version) == Rules(
        dialect="native",
        settle_seconds=2,
        kcm_cleans_mixed_lists=cleans,
        kcm_looks_at_claims=looks,
        dead_reference_seconds=3,
        list_ahead=True,
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"identity": ""}, "--identity: string should have at least 1 character"),
        ({"workers": 0}, "--workers: input should be greater than or equal to 1"),
        ({"settle_seconds": float("nan")}, "--settle-seconds: "),
        ({"batch_seconds": float("inf")}, "--batch-seconds: "),
        (
            {"dialect": "none"},
            "--reservation-mode: input should be 'auto', 'native', 'podgroup' or 'hold'",
        ),
        ({"colour": "red"}, "--colour: extra inputs are not permitted"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(values: dict[str, object], text: str) -> None:
    with pytest.raises(BadSettings) as raised:
        Settings.checked(**{"identity": "one", **values})
    assert str(raised.value).startswith(text)
