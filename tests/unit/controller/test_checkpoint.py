"""Which version the leader notes in the Lease, and when it notes none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec.structs import replace

from claimctl.controller.checkpoint import ANNOTATION, INTERVAL_SECONDS, Checkpoints, read
from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.observations import Observations
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.informer import Change
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.coordination import Lease
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import ClaimReservationStatus
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import CLAIM, NAMESPACE, claim, pod_ref, reservation, running
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)
LEASE = Lease(metadata=ObjectMeta(name="lease", uid="uid-lease"))


@dataclass
class Cache:
    """What the checkpoint asks of an informer."""

    version: str
    objects: dict[str, Any] = field(default_factory=dict)
    broken: tuple[str, ...] = ()

    def items(self) -> list[Any]:
        return list(self.objects.values())

    def get(self, name: str, namespace: str = "") -> Any:
        return self.objects.get(name)

    def unread(self) -> tuple[str, ...]:
        return self.broken


class Leader:
    """A process that saw the claim come by the watch, and its reservation."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.seen = Observations(self.clock)
        self.pods, self.nodes = Cache("30"), Cache("30")
        self.claims, self.reservations = Cache("40"), Cache("50")
        know = Knowledge(cast(Any, self), self.seen, cast(Any, None), self.clock, Rules("hold"))
        self.checkpoints = Checkpoints(know)
        self.seen.claims.pods_listed("", "1")
        self.reserved(version="5")
        self.shows(claim(allocated=False, version="2"))
        self.shows(claim(pod_ref("a"), version="3"))

    def shows(self, new: ResourceClaim, *, relist: bool = False) -> None:
        old = self.claims.get(CLAIM)
        self.claims.objects[CLAIM] = new
        self.seen.claim_changed(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, old, new, relist))

    def reserved(self, version: str, *, told: bool = False) -> None:
        ghosts = self.seen.ghosts.of(KEY).pods if told else ()
        made = reservation(status=ClaimReservationStatus(force_deleted_pods=ghosts))
        made = replace(made, metadata=replace(made.metadata, resource_version=version))
        self.reservations.objects["one"] = made

    def lists(self, *references: Reference) -> None:
        self.seen.ghosts.observe_list(KEY, references, (), "3")

    def noted(self) -> str:
        return read(annotated(self.checkpoints.annotations(LEASE)))


def annotated(annotations: dict[str, str]) -> Lease:
    return replace(LEASE, metadata=replace(LEASE.metadata, annotations=annotations))


def test_the_checkpoint_is_the_version_that_all_caches_have_reached() -> None:
    assert Leader().noted() == "30"


def test_a_checkpoint_of_another_lease_is_none() -> None:
    """The Lease was restored into another cluster."""
    noted = Leader().checkpoints.annotations(LEASE)
    other = ObjectMeta(name="lease", uid="uid-other", annotations=noted)
    assert read(replace(LEASE, metadata=other)) == ""
    assert read(LEASE) == ""


@pytest.mark.parametrize(
    "value",
    ["", "30", "/30", "uid-lease", "uid-lease/", "uid-lease/x", "uid-lease/-3", "uid-lease/٣"],
)
def test_an_annotation_that_is_no_checkpoint_counts_as_none(value: str) -> None:
    assert read(annotated({ANNOTATION: value})) == ""


def test_nothing_is_noted_from_before_a_reservation_was_deleted() -> None:
    """The leader may have missed pods of that claim, and does not look at it any more."""
    leader = Leader()
    leader.seen.claims.reservation_gone(KEY, "other", "31")
    assert leader.noted() == ""
    leader.pods.version = "31"
    assert leader.noted() == "31"


def test_a_checkpoint_is_noted_at_intervals_and_only_if_it_is_new() -> None:
    leader = Leader()
    assert leader.noted() == "30"
    leader.pods.version = "35"
    assert leader.noted() == ""
    leader.clock.time += INTERVAL_SECONDS
    assert leader.noted() == "35"
    leader.clock.time += INTERVAL_SECONDS
    assert leader.noted() == ""


def test_a_ghost_that_no_status_names_keeps_the_checkpoint_back() -> None:
    leader = Leader()
    leader.seen.ghosts.observe(running("a"), None)
    assert leader.noted() == ""
    leader.reserved(version="29", told=True)
    assert leader.noted() == "30"


def test_a_status_that_is_younger_than_the_checkpoint_names_no_ghost_yet() -> None:
    leader = Leader()
    leader.seen.ghosts.observe(running("a"), None)
    leader.reserved(version="31", told=True)
    assert leader.noted() == ""


def test_a_listed_pod_that_the_cache_never_showed_keeps_the_checkpoint_back() -> None:
    leader = Leader()
    leader.lists(pod_ref("b"))
    assert leader.noted() == ""


def test_a_leader_that_missed_pods_itself_notes_nothing_until_the_grace_is_over() -> None:
    leader = Leader()
    leader.seen.claims.pods_listed("2", "20")
    leader.shows(claim(version="25"), relist=True)
    assert leader.noted() == ""
    leader.clock.time += 1000
    assert leader.noted() == "30"


@pytest.mark.parametrize("cache", ["pods", "claims", "reservations"])
def test_a_cache_that_is_being_listed_or_cannot_be_read_keeps_the_checkpoint_back(
    cache: str,
) -> None:
    leader = Leader()
    getattr(leader, cache).version = ""
    assert leader.noted() == ""
    getattr(leader, cache).version = "60"
    getattr(leader, cache).broken = ("one",)
    assert leader.noted() == ""
