"""What claims show about the feature gates of the scheduler and kube-controller-manager."""

from __future__ import annotations

from dataclasses import replace as replace_sighting
from datetime import datetime

import pytest
from msgspec.structs import replace

from claimctl.commands.downgrade.sightings import Component, Sighting, newest, sightings
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    group_ref,
    pod_ref,
    running,
    written_by,
)

HOLD, GROUP = deployment_ref(), group_ref()
SCHEDULER, KCM = Component.SCHEDULER, Component.CONTROLLER_MANAGER


def made_at(pod: Pod, when: datetime) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, creation_timestamp=when))


def allocated_at(made: ResourceClaim, when: datetime | None) -> ResourceClaim:
    assert made.status.allocation is not None
    allocation = replace(made.status.allocation, allocation_timestamp=when)
    return replace(made, status=replace(made.status, allocation=allocation))


def found(
    made: ResourceClaim,
    pods: tuple[Pod, ...] = (),
    replaced: tuple[Reference, ...] = (GROUP,),
    planned: datetime | None = NOW,
) -> list[tuple[Component, bool, datetime]]:
    return [
        (each.component, each.on, each.when) for each in sightings(made, pods, replaced, planned)
    ]


@pytest.mark.parametrize("component", [SCHEDULER, KCM])
def test_a_component_that_listed_a_group_has_the_feature(component: Component) -> None:
    listed = written_by(
        component,
        claim(
            GROUP,
        ),
        {GROUP.uid},
        after(5),
    )
    assert found(listed) == [(component, True, after(5))]


def test_a_group_that_another_client_listed_shows_nothing() -> None:
    listed = written_by(
        "kubectl",
        claim(
            GROUP,
        ),
        {GROUP.uid},
        after(5),
    )
    assert found(listed) == []


def test_a_group_without_a_time_shows_nothing() -> None:
    assert (
        found(
            written_by(
                SCHEDULER,
                claim(
                    GROUP,
                ),
                {GROUP.uid},
            )
        )
        == []
    )


def member(name: str, seconds: float, group: str = "train") -> Pod:
    return made_at(running(name, group=group), after(seconds))


@pytest.mark.parametrize(
    ("pod", "writer", "planned", "expected"),
    [
        pytest.param(
            member("a", 10), SCHEDULER, NOW, [(SCHEDULER, False, after(10))], id="listed by itself"
        ),
        pytest.param(member("a", 10), KCM, NOW, [(KCM, False, after(10))], id="listed by KCM"),
        pytest.param(member("a", -10), SCHEDULER, NOW, [], id="older than the plan"),
        pytest.param(member("a", 10), SCHEDULER, None, [], id="without a plan"),
        pytest.param(member("a", 10), "claimctl", NOW, [], id="listed by claimctl"),
        pytest.param(member("a", 10, "other"), SCHEDULER, NOW, [], id="of another group"),
        pytest.param(member("a", 10, ""), SCHEDULER, NOW, [], id="of no group"),
    ],
)
def test_a_pod_of_a_replaced_group(
    pod: Pod,
    writer: str,
    planned: datetime | None,
    expected: list[tuple[Component, bool, datetime]],
) -> None:
    listed = written_by(writer, claim(pod_ref("a")), {pod.metadata.uid}, after(20))
    assert found(listed, (pod,), planned=planned) == expected


@pytest.mark.parametrize(("shared", "on"), [(True, True), (False, False)])
def test_the_allocation_of_a_claim_of_a_workload(shared: bool, on: bool) -> None:
    made = claim(pod_ref("a"), created_for=HOLD, shared=shared)
    assert found(allocated_at(made, after(3))) == [(SCHEDULER, on, after(3))]
    assert found(allocated_at(made, None)) == []


def test_the_allocation_of_any_other_claim_shows_nothing() -> None:
    assert found(allocated_at(claim(pod_ref("a")), after(3))) == []


def sighting(on: bool, seconds: float) -> Sighting:
    return Sighting(SCHEDULER, on, after(seconds), "ml/slice", "")


@pytest.mark.parametrize(
    ("one", "other", "on"),
    [
        (sighting(True, 1), sighting(False, 2), False),
        (sighting(True, 2), sighting(False, 1), True),
        (sighting(True, 1), sighting(False, 1), True),
    ],
)
def test_the_newest_sighting_counts_and_of_two_the_one_with_the_feature(
    one: Sighting, other: Sighting, on: bool
) -> None:
    assert newest((one, other))[SCHEDULER].on is on
    assert newest((other, one))[SCHEDULER].on is on
    assert KCM not in newest((one, other))


def test_of_two_equal_sightings_the_first_one_counts() -> None:
    """So the answer does not change from run to run."""
    first = Sighting(SCHEDULER, on=True, when=NOW, claim="train/a", what="listed a group")
    second = replace_sighting(first, claim="train/b")
    assert newest([first, second]) == newest([first, second, first]) == {SCHEDULER: first}
