"""Files that are no policy at all."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest

from claimctl_reschedule.policyfile import text
from claimctl_reschedule.policyfile.problems import PolicyError
from tests.support.traps import bomb


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
        (
            "a: !!python/object:os.system {}\n",
            "line 1: the tag !!python/object:os.system is ",
        ),
        ("a: !!timestamp x\n", "line 1: the tag !!timestamp is not read"),
        ("a: &x [*x]\n", "line 1: the alias x stands for a part of itself"),
        ("? [a]\n: b\n", "line 1: a key is a text"),
        (f"a: {'1' * 5000}\n", "line 1: a number has at most 40 characters"),
        (f"a: {'[' * 5000}", "line 1: is nested deeper than 40 levels"),
        ("- " * 5000, "line 1: is nested deeper than 40 levels"),
        (f"{'{a: ' * 900}1{'}' * 900}", "line 1: is nested deeper than 40 levels"),
        (bomb("[{}]"), "line 5: has more than 5000 values, with its aliases"),
        (bomb("{{<<: [{}]}}"), "line 5: has more than 5000 values, with its aliases"),
        ("\x07", "is not YAML: "),
    ],
)
def test_what_is_no_policy(content: str, expected: str) -> None:
    with pytest.raises(PolicyError) as raised:
        text.mapping(content)
    (found,) = raised.value.problems
    assert found.startswith(expected)
    assert "\n" not in found


def test_aliases_of_a_usual_size_are_read() -> None:
    assert text.mapping("a: &x [1, 2]\nb: [*x, *x]\n")["b"] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("content", [bomb("[{}]"), f"a: {'9' * 5000}", f"a: {'[' * 5000}"])
def test_what_is_no_policy_takes_neither_time_nor_memory(content: str) -> None:
    tracemalloc.start()
    began = process_time()
    with suppress(PolicyError):
        text.mapping(content)
    took, (_, peak) = process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 5  # a second where nothing traces memory and nobody else works
    assert peak < 20 << 20


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
        (large, "has 262145 bytes: a policy file has at most 262144"),
    ):
        with pytest.raises(PolicyError) as raised:
            text.read(path)
        assert raised.value.problems == (expected,)
