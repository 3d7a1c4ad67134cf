"""Structs as plain documents."""

from __future__ import annotations

import pytest

from claimctl.wire.base import Wire, every_field
from claimctl.wire.records import RescheduleRecordStatus
from claimctl.wire.reservations import DowngradePlanStatus


class Sample(Wire, frozen=True, kw_only=True):
    phase: str = ""
    last_run: int | None = None
    items: tuple[str, ...] = ()


def test_a_patch_names_the_fields_that_are_empty() -> None:
    assert every_field(Sample(phase="Done")) == {"phase": "Done", "lastRun": None, "items": ()}


@pytest.mark.parametrize("type_", [RescheduleRecordStatus, DowngradePlanStatus])
def test_no_field_of_a_status_is_forgotten(type_: type[Wire]) -> None:
    assert len(every_field(type_())) == len(type_.__struct_fields__)
