"""What ``make switching`` says of settings that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl_demo.real_servers.programs import Programs
from labs.switching import options
from labs.switching.options import Options
from tests.support.variables import BadOption


def _programs(monkeypatch: pytest.MonkeyPatch, minor: int) -> None:
    found = Programs(Path(), (1, minor), f"v1.{minor}.2")
    monkeypatch.setattr(options, "programs_of", lambda version: found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ORDER": "random"}, "ORDER: 'random' is neither runbook nor naive"),
        ({"CLAIMS": "0"}, "CLAIMS: 0 is less than 1"),
        ({"PODS": "some"}, "PODS: 'some' is no number"),
        ({"PODS": "300"}, "PODS: 300 is more than 250, and a claim has 256 places"),
    ],
)
def test_a_bad_setting_is_named_in_one_line(
    given: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _programs(monkeypatch, 36)
    with pytest.raises(BadOption) as raised:
        Options.given(given)
    assert str(raised.value) == says


def test_a_version_without_pod_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _programs(monkeypatch, 34)
    with pytest.raises(BadOption, match=r"has no PodGroups for claims; use 1\.36"):
        Options.given({})
