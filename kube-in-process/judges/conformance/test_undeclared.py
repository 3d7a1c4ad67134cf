"""Which errors of an applied configuration are compared."""

from __future__ import annotations

import pytest

from judges.conformance.undeclared import without_chance

HEAD = "failed to create typed patch object (/a; batch/v1, Kind=Job): "
UNDECLARED = "field not declared in schema"


def of(*errors: str) -> str:
    if len(errors) == 1:
        return without_chance(HEAD + errors[0])
    return without_chance(HEAD + "\n  ".join(["errors:", *errors]))


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ((f".status.x: {UNDECLARED}",), (".status.a: expected map", f".status.x: {UNDECLARED}")),
        ((f".status.x: {UNDECLARED}",), (f".status.y: {UNDECLARED}",)),
        ((f".x: {UNDECLARED}",), (f".spec.y: {UNDECLARED}", f".x: {UNDECLARED}")),
        ((".a: expected map", ".b: expected map"), (".b: expected map", ".a: expected map")),
    ],
)
def test_what_a_real_server_finds_by_chance_does_not_count(
    first: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert of(*first) == of(*other)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ((f".status.x: {UNDECLARED}",), (f".spec.x: {UNDECLARED}",)),
        ((f".spec.x: {UNDECLARED}",), (f".spec.x: {UNDECLARED}", ".status.a: expected map")),
        ((f".spec.x: {UNDECLARED}",), (".spec.a: expected map",)),
        ((".spec.a: expected map",), (".spec.a: expected list",)),
        ((f".spec.x: {UNDECLARED}",), (f".spec.a.x: {UNDECLARED}",)),
    ],
)
def test_other_errors_count(first: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert of(*first) != of(*other)


def test_another_message_is_compared_as_it_is() -> None:
    assert without_chance("pods is forbidden (x): no") == "pods is forbidden (x): no"
