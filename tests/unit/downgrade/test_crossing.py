"""The objects of scheduling.k8s.io/v1alpha2: found, and those of claimctl removed."""

from __future__ import annotations

import pytest

from claimctl.cli.errors import UsageError
from claimctl.commands.downgrade.upgrade_work import checked_target
from claimctl.downgrade.expansion import (
    ClaimToUpgrade,
    Expanded,
    ExpansionObstacle,
    ExpansionRefused,
    expand,
)
from claimctl.downgrade.scope import crosses
from claimctl.wire.base import from_plain, to_plain
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import (
    RESTORE,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from tests.support.builders import claim, deployment_ref, running

GROUP = Reference(
    api_group="scheduling.k8s.io", resource="podgroups", name="train", uid="uid-group"
)
HOLD = deployment_ref()


def under_upgrade(*references: Reference) -> ClaimToUpgrade:
    return from_plain(to_plain(claim(*references)), ClaimToUpgrade)


def test_the_group_gives_way_to_its_pods_and_the_hold_stays() -> None:
    pods = [running(f"p-{number}") for number in range(3)]
    expansion = expand(under_upgrade(HOLD, GROUP), pods)
    assert isinstance(expansion, Expanded)
    assert expansion.removed == (GROUP,)
    assert HOLD in expansion.reserved_for
    assert expansion.pods == 3


def test_an_idle_claim_keeps_its_hold() -> None:
    expansion = expand(under_upgrade(HOLD, GROUP), [])
    assert isinstance(expansion, Expanded)
    assert expansion.reserved_for == (HOLD,)


def test_a_group_alone_without_pods_is_not_taken_away() -> None:
    """An empty list would keep the devices allocated for good."""
    expansion = expand(under_upgrade(GROUP), [])
    assert isinstance(expansion, ExpansionRefused)
    assert expansion.obstacle is ExpansionObstacle.NO_CONSUMER


@pytest.mark.parametrize(("pods", "crosses_over"), [(255, True), (256, False)])
def test_the_hold_takes_one_of_the_places(pods: int, crosses_over: bool) -> None:
    expansion = expand(under_upgrade(HOLD, GROUP), [running(f"p-{n}") for n in range(pods)])
    assert isinstance(expansion, Expanded) == crosses_over
    if isinstance(expansion, ExpansionRefused):
        assert "1 more than the 255 that it can list" in expansion.message


@pytest.mark.parametrize(
    ("spec", "phase", "blocks"),
    [
        (DowngradePlanSpec(upgrade_to="1.37"), "", True),
        (DowngradePlanSpec(upgrade_to="1.37"), "Prepared", True),
        (DowngradePlanSpec(upgrade_to="1.37"), "Failed", False),
        (DowngradePlanSpec(upgrade_to="1.37", action=RESTORE), "", False),
        (DowngradePlanSpec(), "Prepared", False),
    ],
)
def test_no_podgroup_is_made_until_the_way_back(
    spec: DowngradePlanSpec, phase: str, blocks: bool
) -> None:
    plan = DowngradePlan(spec=spec, status=DowngradePlanStatus(phase=phase))
    assert crosses(plan) == blocks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1.36", "an upgrade to 1.36 needs no preparation"),
        ("1.38", "an upgrade to 1.38 needs no preparation"),
        ("latest", "'latest' is not a Kubernetes version: 1.37 is expected"),
        ("1.37.1", "'1.37.1' is not a Kubernetes version"),
    ],
)
def test_other_targets_are_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        checked_target(text)


def test_a_v_before_the_version_is_taken() -> None:
    assert checked_target("v1.37") == "1.37"
