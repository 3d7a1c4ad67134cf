"""The tests have the fixtures of the tests of claimctl."""

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
