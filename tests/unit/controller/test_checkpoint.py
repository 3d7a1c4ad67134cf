"""Which version the leader notes in the Lease, and when it notes none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec.structs import replace

from claimctl.controller.checkpoint import (
    ANNOTATION,
    INTERVAL_SECONDS,
    MOST_NAMED,
    MOST_NAMESPACES,
    Checkpoint,
    Checkpoints,
    named,
    read,
)
from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.observations import Observations
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.informer import Change
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.coordination import Lease
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import ClaimReservationStatus
from claimctl.wire.resources import PODS, RESOURCECLAIMS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import CLAIM, NAMESPACE, claim, pod_ref, reservation, running
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)
LEASE = Lease(metadata=ObjectMeta(name="lease", uid="uid-lease"))


@dataclass
class PlainCache:
    """What the checkpoint asks of an informer."""

    version: str
    objects: dict[str, Any] = field(default_factory=dict)
    broken: tuple[Unreadable, ...] = ()

    def items(self) -> list[Any]:
        return list(self.objects.values())

    def get(self, name: str, namespace: str = "") -> Any:
        return self.objects.get(name)

    def unread(self) -> tuple[Unreadable, ...]:
        return self.broken


class Leader:
    """A process that saw the claim come by the watch, and its reservation."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.seen = Observations(self.clock)
        self.pods, self.nodes = PlainCache("30"), PlainCache("30")
        self.claims, self.reservations = PlainCache("40"), PlainCache("50")
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
        ghosts = tuple(it.pod for it in self.seen.ghosts.of(KEY)) if told else ()
        made = reservation(status=ClaimReservationStatus(force_deleted_pods=ghosts))
        made = replace(made, metadata=replace(made.metadata, resource_version=version))
        self.reservations.objects["one"] = made

    def lists(self, *references: Reference) -> None:
        self.seen.ghosts.observe_list(KEY, references, (), "3")

    def noted(self) -> str:
        return str(read(annotated(self.checkpoints.annotations(LEASE))))


def annotated(annotations: dict[str, str]) -> Lease:
    return replace(LEASE, metadata=replace(LEASE.metadata, annotations=annotations))


def test_the_checkpoint_is_the_version_that_all_caches_have_reached() -> None:
    assert Leader().noted() == "30"


def test_a_checkpoint_of_another_lease_is_none() -> None:
    """The Lease was restored into another cluster."""
    noted = Leader().checkpoints.annotations(LEASE)
    other = ObjectMeta(name="lease", uid="uid-other", annotations=noted)
    assert read(replace(LEASE, metadata=other)) == Checkpoint()
    assert read(LEASE) == Checkpoint()


@pytest.mark.parametrize(
    "value",
    [
        *("", "30", "/30", "uid-lease", "uid-lease/", "uid-lease/x", "uid-lease/-3", "uid-lease/٣"),
        *("uid-lease/30 except ", "uid-lease/30 except A", "uid-lease/30\n", "uid-lease/30 a"),
        f"uid-lease/{'9' * 21}",
    ],
)
def test_an_annotation_that_is_no_checkpoint_counts_as_none(value: str) -> None:
    assert read(annotated({ANNOTATION: value})) == Checkpoint()


def test_what_is_not_covered_is_named_in_a_form_that_earlier_versions_do_not_read() -> None:
    noted = Checkpoint("30", frozenset({"team", f"{NAMESPACE}/a.b-c"}))
    value = f"uid-lease/{noted}"
    assert read(annotated({ANNOTATION: value})) == noted
    assert [noted.covers(ClaimKey(*key)) for key in (("team", "x"), (NAMESPACE, "a.b-c"))] == [
        False,
        False,
    ]
    assert noted.covers(ClaimKey(NAMESPACE, "a.b"))
    # an earlier version takes all that follows the UID for digits
    assert not value.partition("/")[2].isdecimal()


def test_many_claims_are_named_by_the_namespaces_that_have_most_of_them() -> None:
    few = [ClaimKey("victim", "a"), ClaimKey("another", "b")]
    many = [ClaimKey("evil", str(number)) for number in range(MOST_NAMED)]
    assert named(few + many[:-2], ()) == frozenset(map(str, few + many[:-2]))
    assert named(few + many, ()) == frozenset({"evil", "victim/a", "another/b"})
    assert named(few, {"victim"}) == frozenset({"victim", "another/b"})


def test_beyond_a_number_of_namespaces_nothing_is_noted() -> None:
    namespaces = [str(number) for number in range(MOST_NAMESPACES + 1)]
    assert named((), namespaces) is None
    assert len(named((), namespaces[1:]) or ()) == MOST_NAMESPACES


NOT_COVERED = f"30 except {KEY}"


def test_what_is_noted_does_not_cover_where_a_reservation_was_deleted_since() -> None:
    """The leader may have missed pods of that claim, and does not look at it any more."""
    leader = Leader()
    leader.seen.claims.reservation_gone(ClaimKey("other", CLAIM), "31")
    assert leader.noted() == "30 except other"
    leader.pods.version, leader.clock.time = "31", INTERVAL_SECONDS
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


def test_the_claim_of_a_ghost_that_no_status_names_is_not_covered() -> None:
    leader = Leader()
    leader.seen.ghosts.observe(running("a"), None)
    assert leader.noted() == NOT_COVERED
    leader.reserved(version="29", told=True)
    leader.pods.version, leader.clock.time = "31", INTERVAL_SECONDS
    assert leader.noted() == "31"


def test_a_status_that_is_younger_than_the_checkpoint_names_no_ghost_yet() -> None:
    leader = Leader()
    leader.seen.ghosts.observe(running("a"), None)
    leader.reserved(version="31", told=True)
    assert leader.noted() == NOT_COVERED


def test_a_claim_with_a_listed_pod_that_the_cache_never_showed_is_not_covered() -> None:
    leader = Leader()
    leader.lists(pod_ref("b"))
    assert leader.noted() == NOT_COVERED


def test_a_claim_whose_pods_the_leader_missed_is_not_covered_until_the_grace_is_over() -> None:
    leader = Leader()
    leader.seen.claims.pods_listed("2", "20")
    leader.shows(claim(version="25"), relist=True)
    assert leader.noted() == NOT_COVERED
    leader.clock.time += 1000
    leader.pods.version = "31"
    assert leader.noted() == "31"


@pytest.mark.parametrize("cache", ["pods", "claims", "reservations"])
def test_a_cache_that_is_being_listed_keeps_the_checkpoint_back(cache: str) -> None:
    leader = Leader()
    getattr(leader, cache).version = ""
    assert leader.noted() == ""


@pytest.mark.parametrize("cache", ["pods", "claims", "reservations"])
@pytest.mark.parametrize(("namespace", "noted"), [("evil", "30 except evil"), ("", "")])
def test_an_unreadable_object_excludes_its_own_namespace_if_that_is_known(
    cache: str, namespace: str, noted: str
) -> None:
    leader = Leader()
    getattr(leader, cache).broken = (Unreadable(PODS, "?", namespace),)
    assert leader.noted() == noted
