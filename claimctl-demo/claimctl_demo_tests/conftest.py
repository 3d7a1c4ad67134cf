"""The tests of the demonstration repeat as those of claimctl do, and begin as they do."""

from __future__ import annotations

from tests.conftest import default_logging, last_statuses

__all__ = ["default_logging", "last_statuses"]
