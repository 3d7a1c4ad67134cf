"""Printed structs are left out of a message, and nothing else."""

import pytest

from judges.conformance.printed import without_printed_values

_SAME = (
    'metadata.name: Invalid value: "a{b": must be no more than 63 bytes',
    "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    "spec.suspend: Invalid value: true: field is immutable",
    "spec: Forbidden: {not a value}",
)


@pytest.mark.parametrize("text", _SAME)
def test_texts_numbers_and_booleans_stay(text: str) -> None:
    assert without_printed_values(text) == text


@pytest.mark.parametrize(
    "printed",
    [
        "null",
        "{}",
        "[]",
        '{"A":{"B":"}\\"{"},"C":[1,2]}',
        '[{"a":"]"}]',
        'v1.LabelSelector{MatchLabels:map[string]string{"a":"}"}}',
        '&resource.Spec{A:(*v1.B)(nil), C:[]string{"x"}}',
        "map[string]string(nil)",
        '[]string{"Odd"}',
    ],
)
def test_structs_lists_and_maps_are_left_out(printed: str) -> None:
    text = f"[spec: Invalid value: {printed}: is wrong, x: Duplicate value: {printed}]"
    expected = "[spec: Invalid value: <value>: is wrong, x: Duplicate value: <value>]"
    assert without_printed_values(text) == expected
