"""Names that no API server would take are refused before anything is asked of one."""

from __future__ import annotations

import pytest

from claimctl.cli.main import run
from claimctl.cli.options import claim_name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["explain", "Bad_Name"], "'Bad_Name' is not a DNS name"),
        (["release", "-x-"], "No such option"),
        (["release", "a..b"], "'a..b' is not a DNS name"),
        (["explain", "a" * 254], "is not a DNS name"),
        (["release", "pod/a"], "'pod/a': the kind before '/' must be one of: resourceclaim"),
        (["get", "nodes/a"], "'nodes/a': the kind before '/' must be one of: resourceclaim"),
        (["get", "claim/Bad_Name"], "'Bad_Name' is not a DNS name"),
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


@pytest.mark.parametrize(
    "given",
    [
        "slice",
        "claim/slice",
        "resourceclaim/slice",
        "ResourceClaims/slice",
        "resourceclaim.resource.k8s.io/slice",
        "resourceclaims.resource.k8s.io/slice",
        "resourceclaims.v1beta1.resource.k8s.io/slice",
    ],
)
def test_a_claim_is_named_as_commands_print_it(given: str) -> None:
    assert claim_name(given) == "slice"
