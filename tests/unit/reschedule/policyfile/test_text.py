"""Files that are no policy at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl.reschedule.policyfile import text
from claimctl.reschedule.policyfile.problems import PolicyError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty: a DeschedulerPolicy is expected"),
        ("# nothing\n---\n", "is empty: a DeschedulerPolicy is expected"),
        ("- a\n- b\n", "is a list: a DeschedulerPolicy with apiVersion and kind is expected"),
        ("text\n", "is a text: a DeschedulerPolicy with apiVersion and kind is expected"),
        ("3\n", "is one value: a DeschedulerPolicy with apiVersion and kind is expected"),
        ("a: 1\n---\nb: 2\n", "has 2 documents: one DeschedulerPolicy is expected"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key a is repeated"),
        ("a: [1\n", "line 2: expected ',' or ']', but got '<stream end>'"),
        ("a: !!python/object:os.system {}\n", "line 1: could not determine a constructor for the "),
        ("a: &x [*x]\n", "is not a policy: Circular reference detected"),
        ("\x07", "is not YAML: "),
    ],
)
def test_what_is_no_policy(content: str, expected: str) -> None:
    with pytest.raises(PolicyError) as raised:
        text.mapping(content)
    (found,) = raised.value.problems
    assert found.startswith(expected)
    assert "\n" not in found


def test_times_stay_texts() -> None:
    assert text.mapping("a: 2026-01-01\n") == {"a": "2026-01-01"}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    other = tmp_path / "latin"
    other.write_bytes(b"\xff")
    large = tmp_path / "large"
    large.write_bytes(b" " * (text.LARGEST + 1))
    for path, expected in (
        (tmp_path, "is a directory: name the policy file in it"),
        (tmp_path / "absent", "cannot be read: No such file or directory"),
        (other, "is not UTF-8: a YAML or JSON file is expected"),
        (large, "has 1048577 bytes: a policy file has at most 1048576"),
    ):
        with pytest.raises(PolicyError) as raised:
            text.read(path)
        assert raised.value.problems == (expected,)
