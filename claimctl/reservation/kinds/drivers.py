"""The habits of DRA drivers that claimctl ships: one entry for each driver, in ``drivers.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from claimctl.wire.base import Wire, from_plain
from claimctl.yaml_text import loaded


class DriverHabits(Wire, frozen=True, kw_only=True):
    """What a driver does that a hold has to respect."""

    driver: str
    """The name of the driver in allocations and ResourceSlices."""
    name: str = ""
    """The name of the project."""
    versions: str = ""
    """The versions in which the habits were seen or read."""
    wants_one_pod: bool = False
    """Whether it refuses to prepare a claim unless the claim's list has one entry, a pod."""
    hides_used_devices: bool = False
    """Whether it takes a device out of its ResourceSlices while a pod uses the device."""
    source: str = ""
    """The file of the driver that shows the habits."""


@lru_cache(maxsize=1)
def known_drivers() -> Mapping[str, DriverHabits]:
    """The shipped habits by the name of the driver."""
    text = files(__package__).joinpath("drivers.yaml").read_text(encoding="utf-8")
    entries = from_plain(loaded(text), tuple[DriverHabits, ...])
    return {entry.driver: entry for entry in entries}
