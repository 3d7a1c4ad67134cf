"""The names of tests are the same in every test process."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("content", [b"one", b"two"])
def test_bytes_are_no_part_of_a_name(content: bytes, request: pytest.FixtureRequest) -> None:
    number = [b"one", b"two"].index(content)
    assert request.node.name == f"test_bytes_are_no_part_of_a_name[content{number}]"
