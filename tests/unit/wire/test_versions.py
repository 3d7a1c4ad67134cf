"""Which resourceVersion is the later one, and when a copy of the server has come as far."""

from __future__ import annotations

import pytest

from claimctl.wire.meta import reaches


@pytest.mark.parametrize(
    ("seen", "wanted", "expected"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("10", "10", True),
        ("", "1", False),
        ("abc", "abc", True),
        ("abc", "1", False),
    ],
)
def test_a_version_reaches_another(seen: str, wanted: str, expected: bool) -> None:
    assert reaches(seen, wanted) is expected
