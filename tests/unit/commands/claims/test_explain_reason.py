"""``claimctl explain reason/NAME`` needs no cluster."""

from __future__ import annotations

import json

import pytest

from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output
from claimctl.cli.main import run
from claimctl.commands.claims.explain_work import explain_reason
from claimctl.commands.claims.matters import MatterKind


def test_a_reason_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "reason/consumersleft"]) == 0
    assert capsys.readouterr().out == (
        "ConsumersLeft: Pods use the claim.\n"
        "What to do: Scale the workload down, or delete the pods that the message names.\n"
    )


@pytest.mark.parametrize("kind", MatterKind)
def test_each_word_in_brackets_of_get_is_explained(
    kind: MatterKind, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain_reason(kind.reason, Output.TABLE) == 0
    assert capsys.readouterr().out.startswith(f"{kind.reason}: ")


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    explain_reason("Idle", Output.JSON)
    found = json.loads(capsys.readouterr().out)
    assert (found["reason"], found["remedy"]) == ("Idle", "")


@pytest.mark.parametrize(
    ("name", "words"),
    [("ConsumerLeft", "did you mean ConsumersLeft"), ("Qqq", "see docs/reference/reasons.md")],
)
def test_an_unknown_reason_is_answered_with_those_that_are_near(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"no such reason; {words}"):
        explain_reason(name, Output.TABLE)
