"""The one entry of the labs."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from labs.__main__ import LABS, main, module_of


@pytest.mark.parametrize("name", LABS)
def test_each_lab_is_there(name: str) -> None:
    assert find_spec(module_of(name)) is not None
    assert LABS[name][1]


def test_without_a_name_all_labs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and what in out for name, (_, what) in LABS.items())


def test_an_unknown_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tortur"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "labs: no lab is named 'tortur': `python -m labs` lists them"
    ]
