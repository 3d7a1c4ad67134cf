"""Where the volumes of a pod can be used."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.fit import Unknown, Volumes
from claimctl_reschedule.shapes.scheduling import (
    PersistentVolume,
    PersistentVolumeClaim,
    SchedulingPod,
)
from claimctl_reschedule_tests.support.scheduling import pod

ON_A = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]}


def claim(name: str, volume: str) -> PersistentVolumeClaim:
    document = {
        "metadata": {"namespace": "team", "name": name},
        "spec": {"volumeName": volume, "storageClassName": "fast"},
    }
    return from_plain(document, PersistentVolumeClaim)


def volume(name: str, required: dict[str, Any] | None) -> PersistentVolume:
    affinity = {"nodeAffinity": {"required": required}} if required else {}
    return from_plain({"metadata": {"name": name}, "spec": affinity}, PersistentVolume)


def using(*volumes: dict[str, Any]) -> SchedulingPod:
    named = [{"name": f"v{number}", **each} for number, each in enumerate(volumes)]
    return pod("p", "a", spec={"volumes": named})


def named(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


KNOWN = Volumes(
    [claim("disk", "pv-1"), claim("any", "pv-2"), claim("lost", "pv-3")],
    [volume("pv-1", ON_A), volume("pv-2", None)],
)


def test_the_node_affinity_of_all_volumes_counts() -> None:
    found = KNOWN.affinity_of(using(named("disk"), named("any"), {"emptyDir": {}}))
    assert len(found) == 1
    assert found[0].node_selector_terms is not None


def test_the_claim_of_an_ephemeral_volume_is_made_anew() -> None:
    assert KNOWN.affinity_of(using({"ephemeral": {}})) == ()
    assert list(KNOWN.claims_of(using({"ephemeral": {}}))) == []


@pytest.mark.parametrize("name", ["absent", "lost"])
def test_a_volume_that_is_not_known_is_an_error(name: str) -> None:
    with pytest.raises(Unknown, match="was not found"):
        KNOWN.affinity_of(using(named(name)))


def test_a_claim_of_another_namespace_is_another_claim() -> None:
    other = pod("p", "a", namespace="other", spec={"volumes": [{"name": "v", **named("disk")}]})
    assert list(KNOWN.claims_of(other)) == [None]
