"""jsonpath and custom-columns, as kubectl users write them."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.cli.expressions import BadExpression, check, custom_columns, evaluated

DOCUMENT: dict[str, Any] = {
    "kind": "ClaimList",
    "items": [
        {"name": "slice", "state": "Held", "devices": ["n1/d1", "n1/d2"], "a.b": 1, "age": None},
        {"name": "other", "state": "Pending", "devices": []},
    ],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].name}", "slice other"),
        (".items[*].name", "slice other"),
        ("{$.kind}: {.items[0].state}", "ClaimList: Held"),
        (
            '{range .items[*]}{.name}{"\\t"}{.devices[*]}{"\\n"}{end}',
            "slice\tn1/d1 n1/d2\nother\t\n",
        ),
        (
            "{range .items[*]}{@.name} of {$.kind}, {end}",
            "slice of ClaimList, other of ClaimList, ",
        ),
        ('{.items[?(@.state=="Held")].name}', "slice"),
        ("{.items[?(@.state=='Pending')].name}", "other"),
        ("{.items[-1:].name}", "other"),
        ("{..name}", "slice other"),
        ("{.items[0].a\\.b}", "1"),
        ("{.items[0].devices}", '["n1/d1", "n1/d2"]'),
        ("{.nothing.here}", ""),
    ],
)
def test_templates(template: str, text: str) -> None:
    check("jsonpath", template)
    assert evaluated(template, DOCUMENT) == text


@pytest.mark.parametrize(
    ("template", "part"),
    [
        ("{.items[", "not closed"),
        ("}", "not opened"),
        ("{}", "empty braces"),
        ("{end}", "without {range"),
        ("{range .items[*]}{.name}", "without {end}"),
        ("{.items[*}", "'.items[*' is not understood"),
        ("{range .items[*]}{.a..}{end}", "'.a..' is not understood"),
    ],
)
def test_what_is_no_template_is_one_line(template: str, part: str) -> None:
    with pytest.raises(BadExpression) as told:
        check("jsonpath", template)
    assert part in str(told.value)
    assert "\n" not in str(told.value)


def test_columns_of_the_items_of_a_list() -> None:
    titles, rows = custom_columns("CLAIM:.name,DEVICES:{.devices[*]},AGE:.age", DOCUMENT)
    assert titles == ("CLAIM", "DEVICES", "AGE")
    assert rows == (("slice", "n1/d1,n1/d2", ""), ("other", "", ""))


def test_columns_of_one_document() -> None:
    _, rows = custom_columns("KIND:kind,NAMES:.a[0,1]", {"kind": "X", "a": [1, 2]})
    assert rows == (("X", "1,2"),)


@pytest.mark.parametrize("spec", ["name", "A:", ":.name", "A:.name,", "A:.name["])
def test_what_is_no_column_is_refused(spec: str) -> None:
    with pytest.raises(BadExpression):
        check("custom-columns", spec)
