"""Names that no API server would take are refused before anything is asked of one."""

from __future__ import annotations

import pytest

from claimctl.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["explain", "Bad_Name"], "'Bad_Name' is not a DNS name"),
        (["release", "-x-"], "No such option"),
        (["release", "a..b"], "'a..b' is not a DNS name"),
        (["explain", "a" * 254], "is not a DNS name"),
        (["get", "-n", "a.b"], "'a.b' is not a DNS label"),
        (["get", "-n", ""], "'' is not a DNS label"),
    ],
)
def test_a_name_that_is_none(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert captured.err.count("\n") == 1
