"""The tests of the labs have the fixtures of the other tests."""

from tests.conftest import (
    default_logging,
    last_statuses,
    options,
    pytest_collection,
    pytest_make_parametrize_id,
)

__all__ = [
    "default_logging",
    "last_statuses",
    "options",
    "pytest_collection",
    "pytest_make_parametrize_id",
]
