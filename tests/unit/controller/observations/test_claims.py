"""Ages are measured from this process's own first sight."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import Memories
from claimctl.controller.observations.own_writes import REPEAT_SECONDS
from claimctl.controller.observations.reservations import ReservationsSeen
from claimctl.kube.informer import Change
from claimctl.reservation.facts.devices import JudgedDevice
from claimctl.reservation.facts.memory import Memory, Openings
from claimctl.wire.claims import DeviceRequestAllocationResult, ResourceClaim
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
)
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)
FREE = claim(allocated=False, version="2")
TAKEN = claim(version="3")


def ages(memories: Memories, of: ResourceClaim, *dead: str) -> Memory:
    return observed(memories, of, dead)


def observed(
    memories: Memories, of: ResourceClaim, dead: Iterable[str] = (), unstarted: Iterable[str] = ()
) -> Memory:
    memories.observe_present(KEY, dead, unstarted)
    return memories.memory(of)


def test_a_version_ages_from_its_first_sight() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim(allocated=False, version="1"))
    clock.time = 3
    memories.see(claim(allocated=False, version="1"))
    assert ages(memories, claim(allocated=False, version="1")).version_age == 3
    memories.see(claim(allocated=False, version="2"))
    clock.time = 5
    assert ages(memories, claim(allocated=False, version="2")).version_age == 2


def test_an_allocation_ages_from_its_first_sight() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(FREE)
    assert ages(memories, FREE).allocated_age == inf
    memories.see(TAKEN)
    clock.time = 3
    memories.see(claim(version="4"))
    assert ages(memories, claim(version="4")).allocated_age == 3


def test_a_claim_first_seen_allocated_is_blind_until_it_is_seen_unallocated() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.pods_listed("", "1")
    memories.see(claim(version="2"))
    clock.time = 7
    assert ages(memories, claim(version="2")).blind_age == 7
    memories.see(claim(allocated=False, version="3"))
    memories.see(claim(version="4"))
    assert ages(memories, claim(version="4")).blind_age is None


def test_without_a_list_of_the_pods_everything_is_blind() -> None:
    memories = Memories(HandClock())
    memories.see(claim(allocated=False, version="1"))
    memories.see(claim(version="2"), just_allocated=True)
    assert ages(memories, claim(version="2")).blind_age == 0


def blind(*seen: str, listed: str) -> bool:
    """``-3``: without allocation at version 3; ``3``: with one; ``3!``: an event brought it."""
    memories = Memories(HandClock())
    memories.pods_listed("", listed)
    for each in seen:
        shown = claim(allocated=not each.startswith("-"), version=each.strip("-!"))
        memories.see(shown, just_allocated=each.endswith("!"))
    return ages(memories, shown).blind_age is not None


@pytest.mark.parametrize(
    ("seen", "listed", "expected"),
    [
        # the pods were listed after the allocation
        (("-2", "3!"), "5", True),
        # the allocation was made after the pods had been listed
        (("-2", "6!"), "5", False),
        (("-5", "6"), "5", False),
        # a list shows an allocation: it may be older than the list of the pods
        (("-2", "6"), "5", True),
        (("6",), "5", True),
        # whatever a live GET, or a late event, shows in between
        (("-2", "7", "6!"), "5", False),
        (("-2", "6!", "7"), "5", False),
        (("-6", "-2", "7"), "5", False),
        (("-2", "3!", "-4", "7"), "5", True),
        (("-2", "3!", "-6", "7"), "5", False),
        # versions that cannot be compared prove nothing
        (("-x", "y!"), "5", True),
    ],
)
def test_blind_is_who_may_have_been_allocated_before_the_pods_were_last_listed(
    seen: tuple[str, ...], listed: str, expected: bool
) -> None:
    assert blind(*seen, listed=listed) == expected


def test_a_claim_under_another_uid_is_another_claim() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim(version="1", deleting=True))
    clock.time = 4
    other = claim(version="9", allocated=False)
    other = replace(other, metadata=replace(other.metadata, uid="uid-other"))
    memories.see(other)
    expected = Memory(openings=Openings(watched_age=0.0), unnoticed_age=inf)
    assert ages(memories, other) == expected


def test_a_claim_is_deallocated_by_this_process_at_the_version_it_wrote_and_no_other() -> None:
    memories = Memories(HandClock())
    held, cleared = claim(version="4"), claim(allocated=False, version="5")
    memories.see(held)
    memories.deallocated(cleared.metadata)
    assert not ages(memories, held).deallocated
    memories.see(cleared)
    assert ages(memories, cleared).deallocated
    later = claim(allocated=False, version="6")
    memories.see(later)
    assert not ages(memories, later).deallocated


def test_deletion_ages_from_its_first_sight_whatever_versions_follow() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim(allocated=False, version="1", deleting=True))
    clock.time = 6
    memories.see(claim(allocated=False, version="2", deleting=True))
    assert ages(memories, claim(allocated=False, version="2")).deleting_age == 6


def test_the_dead_age_until_they_are_no_longer_dead() -> None:
    clock = HandClock()
    memories = Memories(clock)
    seen = claim(allocated=False)
    memories.see(seen)
    ages(memories, seen, "a")
    clock.time = 2
    assert ages(memories, seen, "a", "b").dead_age == {"a": 2, "b": 0}
    ages(memories, seen, "b")
    assert ages(memories, seen, "a").dead_age == {"a": 0}


def test_a_list_that_has_to_be_written_again_is_counted_for_a_minute() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim())
    held, other = (deployment_ref(), pod_ref("a")), (pod_ref("a"),)
    memories.wrote_list(KEY, held)
    assert ages(memories, claim()).repeated_writes == 0
    memories.wrote_list(KEY, other)
    memories.wrote_list(KEY, held)
    memories.wrote_list(KEY, tuple(reversed(held)))
    assert ages(memories, claim()).repeated_writes == 2
    clock.time = REPEAT_SECONDS
    assert ages(memories, claim()).repeated_writes == 0


def test_a_new_allocation_begins_a_new_count() -> None:
    memories = Memories(HandClock())
    memories.see(claim(version="1"))
    memories.wrote_list(KEY, (deployment_ref(),))
    memories.see(claim(version="2", allocated=False))
    memories.see(claim(version="3"))
    memories.wrote_list(KEY, (deployment_ref(),))
    assert ages(memories, claim()).repeated_writes == 0


def test_a_fence_is_as_old_as_the_time_since_this_process_made_it() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim())
    assert memories.fenced_age(KEY) is None
    memories.fenced(KEY)
    clock.time = 7
    assert memories.fenced_age(KEY) == 7.0
    memories.see(claim(allocated=False))
    assert memories.fenced_age(KEY) is None


def test_a_claim_that_was_forgotten_meanwhile_is_as_at_first_sight() -> None:
    memories = Memories(HandClock())
    memories.pods_listed("", "1")
    memories.see(claim(allocated=False))
    memories.see(claim())
    memories.forget(KEY)
    assert ages(memories, claim()) == Memory(blind_age=0.0, openings=Openings(watched_age=0.0))
    assert memories.allocated_age(KEY) == 0.0


def test_the_blind_wait_begins_with_the_last_list_of_the_pods() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.see(claim(allocated=False, version="1"))
    memories.see(claim(version="2"), just_allocated=True)
    for clock.time, version in ((3, "3"), (5, "4")):
        memories.pods_listed("", version)
    clock.time = 9
    memories.see(claim(version="5"))
    assert ages(memories, claim(version="5")).blind_age == 4


def test_a_bound_pod_is_known_from_when_it_was_first_seen_until_it_starts() -> None:
    clock = HandClock()
    memories = Memories(clock)
    seen = claim()
    memories.see(seen)
    observed(memories, seen, unstarted=["a"])
    clock.time = 4
    assert observed(memories, seen, unstarted=["a", "b"]).unstarted_age == {"a": 4, "b": 0}
    observed(memories, seen, unstarted=["b"])
    assert observed(memories, seen, unstarted=["a"]).unstarted_age == {"a": 0}


def asks(version: str, uid: str = "uid-slice") -> ClaimReservation:
    made = reservation(annotations={"claimctl.io/release": uid})
    return replace(made, metadata=replace(made.metadata, resource_version=version))


@pytest.mark.parametrize(
    ("seen", "asked", "had"),
    [
        (["7", "-9"], "8", True),
        (["7", "-9", "10"], "8", True),
        (["-5", "7"], "8", False),
        (["7"], "8", False),
        (["-9", "10"], "11", False),
    ],
    ids=["freed", "and allocated anew", "of before", "never freed", "asked for anew"],
)
def test_a_release_was_had_if_the_claim_was_free_after_it_was_asked_for(
    seen: list[str], asked: str, had: bool
) -> None:
    memories, told = Memories(HandClock()), ReservationsSeen(HandClock())
    told.see(None, asks(asked))
    for each in seen:
        free = each.startswith("-")
        memories.see(claim(allocated=not free, version=each.removeprefix("-")))
    told.see(asks(asked), asks("99"))
    assert bool(memories.requests_met(KEY, told.requests(asks("99")))) is had


def test_the_own_write_counts_before_any_watch_tells_of_it() -> None:
    memories, told = Memories(HandClock()), ReservationsSeen(HandClock())
    memories.see(claim(version="7"))
    told.see(None, asks("8"))
    memories.deallocated(claim(allocated=False, version="9").metadata)
    assert memories.requests_met(KEY, told.requests(asks("8")))


def test_a_request_for_another_claim_or_none_is_not_had() -> None:
    memories, told = Memories(HandClock()), ReservationsSeen(HandClock())
    memories.see(claim(allocated=False, version="9"))
    assert not memories.requests_met(KEY, told.requests(reservation()))
    told.see(None, asks("8", uid="uid-other"))
    assert not memories.requests_met(KEY, told.requests(asks("8", uid="uid-other")))
    told.see(asks("8", uid="uid-other"), reservation())
    told.see(reservation(), asks("12"))
    assert not memories.requests_met(KEY, told.requests(asks("12")))


def unnoticed(memories: Memories, version: str) -> float:
    return ages(memories, claim(version=version)).unnoticed_age


def watched() -> tuple[HandClock, Memories]:
    """A claim that the watch brought, and its allocation; the pods were listed before."""
    clock = HandClock()
    memories = Memories(clock)
    memories.pods_listed("", "1")
    memories.see(claim(allocated=False, version="2"), created=True)
    memories.see(claim(version="3"), just_allocated=True)
    return clock, memories


def test_a_gap_in_the_watch_of_pods_hides_no_pod_of_a_list_that_was_watched() -> None:
    clock, memories = watched()
    clock.time = 50
    memories.pods_listed("4", "9")
    assert unnoticed(memories, "3") == inf


def test_a_list_that_changed_in_a_gap_of_its_own_hides_pods_since_the_last_list_of_pods() -> None:
    clock, memories = watched()
    clock.time = 50
    memories.pods_listed("4", "9")
    clock.time = 60
    memories.see(claim(version="8"))
    memories.missed(claim(version="8"))
    assert unnoticed(memories, "8") == 10
    clock.time = 100
    memories.pods_listed("9", "20")
    assert unnoticed(memories, "8") == 50, "a later gap hides no pod of this list"


def test_a_gap_of_pods_that_began_before_a_gap_of_claims_ended_may_hide_pods() -> None:
    clock, memories = watched()
    memories.see(claim(version="8"))
    memories.missed(claim(version="8"))
    clock.time = 50
    memories.pods_listed("7", "20")
    assert unnoticed(memories, "8") == 0


def test_a_gap_that_began_before_the_list_was_watched_may_hide_its_pods() -> None:
    clock, memories = watched()
    clock.time = 50
    memories.pods_listed("1", "9")
    assert unnoticed(memories, "3") == 0


def test_an_etcd_that_was_restored_hides_everything() -> None:
    clock, memories = watched()
    clock.time = 50
    memories.pods_listed("90", "70")
    assert unnoticed(memories, "3") == 0
    clock, memories = watched()
    memories.claims_listed("90", "95")
    assert unnoticed(memories, "3") == inf
    memories.claims_listed("95", "70")
    assert unnoticed(memories, "3") == 0


def test_a_claim_that_was_read_live_first_may_hide_pods() -> None:
    memories = Memories(HandClock())
    memories.see(claim(version="3"))
    assert unnoticed(memories, "3") == 0


def test_a_claim_that_was_missed_and_is_not_known_is_no_error() -> None:
    memories = Memories(HandClock())
    memories.missed(claim(version="8"))
    memories.see(claim(version="8"))
    assert unnoticed(memories, "8") == 0


@pytest.mark.parametrize(
    ("pods", "checkpoint", "before", "claims", "reserved", "known"),
    [
        pytest.param("30", "30", "", "30", [KEY], True, id="all lists show the checkpoint"),
        pytest.param("30", "30", "", "30", [], False, id="a claim that had no reservation"),
        pytest.param("30", "", "", "30", [KEY], False, id="no checkpoint"),
        pytest.param("31", "30", "", "30", [KEY], False, id="the list of pods is later"),
        pytest.param("31", "30", "", "31", [KEY], False, id="both lists are later"),
        pytest.param("30", "30", "", "31", [KEY], False, id="the list of claims is later"),
        pytest.param("30", "30", "29", "30", [KEY], False, id="not the first list of claims"),
        pytest.param("", "", "", "", [KEY], False, id="versions that are not known"),
    ],
)
def test_a_claim_is_known_from_the_checkpoint_if_the_first_lists_show_it(
    pods: str, checkpoint: str, before: str, claims: str, reserved: list[ClaimKey], known: bool
) -> None:
    memories = Memories(HandClock())
    memories.checkpoint = checkpoint
    memories.pods_listed("", pods)
    allocated = claim(deployment_ref(), version="10")
    memories.see(allocated)
    memories.claims_listed(before, claims, reserved)
    seen = ages(memories, allocated)
    assert (seen.blind_age, seen.unnoticed_age) == ((None, inf) if known else (0, 0))


def test_a_reserved_claim_that_is_gone_by_the_checkpoint_is_no_error() -> None:
    memories = Memories(HandClock())
    memories.checkpoint = "30"
    memories.pods_listed("", "30")
    memories.claims_listed("", "30", [KEY])
    memories.see(claim(version="40"))
    assert ages(memories, claim(version="40")).blind_age == 0


def test_the_checkpoint_vouches_for_a_claim_only_while_its_reservation_stands() -> None:
    """The status of a deleted reservation may have been the only record of a ghost."""
    clock = HandClock()
    memories = Memories(clock)
    memories.checkpoint = "30"
    memories.pods_listed("", "30")
    allocated = claim(deployment_ref(), version="10")
    memories.see(allocated)
    memories.claims_listed("", "30", [KEY])
    assert ages(memories, allocated).blind_age is None
    memories.reservation_gone(KEY, "40")
    clock.time = 5
    assert ages(memories, allocated).blind_age == 5


@pytest.mark.parametrize("relisted", ["pods", "claims"])
def test_after_a_restore_of_etcd_no_version_of_the_lost_history_proves_anything(
    relisted: str,
) -> None:
    """The claim was certainly allocated after the pods were listed, but in the lost history."""
    clock, memories = watched()
    memories.openings.observe(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, None, FREE, False))
    memories.openings.observe(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, FREE, TAKEN, False))
    assert ages(memories, TAKEN).blind_age is None
    assert memories.openings.history_complete(TAKEN, "9")
    clock.time = 50
    (memories.pods_listed if relisted == "pods" else memories.claims_listed)("90", "2")
    clock.time = 60
    assert ages(memories, TAKEN).blind_age == 10
    assert not memories.openings.history_complete(TAKEN, "9")
    memories.pods_listed("2", "2")
    assert ages(memories, TAKEN).blind_age == 0


def test_after_a_restore_of_etcd_the_checkpoint_proves_nothing() -> None:
    clock = HandClock()
    memories = Memories(clock)
    memories.checkpoint = "30"
    memories.pods_listed("", "30")
    memories.see(claim(deployment_ref(), version="10"))
    memories.claims_listed("", "30", [KEY])
    memories.claims_listed("40", "20")
    memories.pods_listed("", "25")
    assert ages(memories, claim(deployment_ref(), version="10")).blind_age == 0


@pytest.mark.parametrize(
    ("reached", "known"),
    [pytest.param("30", False, id="refused"), pytest.param("31", True, id="accepted before")],
)
def test_the_checkpoint_counts_only_if_the_server_accepts_a_watch_of_claims_from_there(
    reached: str, known: bool
) -> None:
    """A server that was started since may serve an etcd that was restored from a backup."""
    clock, taken = HandClock(), claim(deployment_ref(), version="10")
    memories = Memories(clock)
    memories.checkpoint = "30"
    memories.pods_listed("", "30")
    memories.openings.observe(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, taken, taken, True))
    memories.see(taken)
    memories.missed(taken)
    memories.claims_listed("", "30", [KEY])
    clock.time = 5
    memories.pods_listed("30", "40")
    memories.claims_listed(reached, "40")
    clock.time = 8
    assert unnoticed(memories, "10") == (inf if known else 3)
    assert memories.openings.history_complete(taken, "40") == known


def test_after_a_restore_of_etcd_no_claim_counts_as_deallocated_by_this_process() -> None:
    _, memories = watched()
    memories.deallocated(claim(allocated=False, version="4").metadata)
    memories.see(claim(allocated=False, version="4"))
    assert ages(memories, claim(allocated=False, version="4")).deallocated
    memories.pods_listed("90", "2")
    assert not ages(memories, claim(allocated=False, version="4")).deallocated


def test_pods_that_are_listed_again_before_the_claims_leave_the_checkpoint_good() -> None:
    """The API server was restarted: it lists the past, and refuses to watch from there on."""
    clock = HandClock()
    memories = Memories(clock)
    memories.checkpoint = "30"
    memories.pods_listed("", "30")
    memories.pods_listed("30", "50")
    memories.see(claim(version="10"))
    memories.missed(claim(version="10"))
    memories.claims_listed("", "30", [KEY])
    assert unnoticed(memories, "10") == inf
    assert ages(memories, claim(version="10")).blind_age == 0, "where pods are not listed"


def test_no_checkpoint_is_noted_before_a_gap_in_the_watch_of_reservations() -> None:
    memories = Memories(HandClock())
    memories.reservations_listed("20")
    assert memories.least_checkpoint == "20"


def test_a_checkpoint_does_not_cover_where_a_reservation_was_deleted_after_it() -> None:
    memories, elsewhere = Memories(HandClock()), ClaimKey("other", CLAIM)
    for key, version in ((KEY, "30"), (KEY, "25"), (elsewhere, "20")):
        memories.reservation_gone(key, version)
    assert memories.not_covered_by("19") == {NAMESPACE, "other"}
    assert memories.not_covered_by("29") == {NAMESPACE}
    assert memories.not_covered_by("30") == set()


def test_a_claim_that_the_checkpoint_does_not_cover_waits_and_another_one_does_not() -> None:
    memories, taken = Memories(HandClock()), claim(deployment_ref(), version="10")
    other = replace(taken, metadata=replace(taken.metadata, name="other"))
    memories.checkpoint, memories.covers = "30", lambda key: key != KEY
    memories.pods_listed("", "30")
    for each in (taken, other):
        memories.see(each)
    memories.claims_listed("", "30", [KEY, ClaimKey(NAMESPACE, "other")])
    assert [ages(memories, each).blind_age for each in (taken, other)] == [0, None]


def test_a_device_that_evicted_a_pod_counts_until_the_claim_is_allocated_anew() -> None:
    memories = Memories(HandClock())
    memories.see(claim(version="1"))
    assert not ages(memories, claim(version="1")).evicting
    memories.evicts(KEY)
    memories.see(claim(version="2"))
    assert ages(memories, claim(version="2")).evicting
    memories.see(claim(allocated=False, version="3"))
    memories.see(claim(version="4"))
    assert not ages(memories, claim(version="4")).evicting


def judged(name: str, *, gone: bool = False, unpublished: bool = False) -> JudgedDevice:
    result = DeviceRequestAllocationResult(driver="gpu.example.com", pool="node-0", device=name)
    return JudgedDevice(result, gone=gone, unpublished=unpublished)


def gone_ages(memories: Memories, version: str = "1") -> dict[str, float]:
    ages = memories.memory(claim(version=version)).gone_age
    return {device: age for (_, _, device), age in ages.items()}


def test_a_device_is_gone_since_it_was_first_seen_so_in_the_present_allocation() -> None:
    clock, lost = HandClock(), judged("gpu-0", gone=True)
    memories = Memories(clock)
    memories.observe_present(KEY, (), (), (lost,))
    memories.see(claim(version="1"))
    memories.observe_present(KEY, (), (), (lost,))
    clock.time += 7
    memories.observe_present(KEY, (), (), (lost, judged("gpu-1", gone=True)))
    assert gone_ages(memories) == {"gpu-0": 7, "gpu-1": 0}
    memories.observe_present(KEY, (), (), (judged("gpu-0"),))
    memories.observe_present(KEY, (), (), (lost,))
    assert gone_ages(memories) == {"gpu-0": 0}
    clock.time += 7
    memories.see(claim(allocated=False, version="2"))
    assert gone_ages(memories, "2") == {}


@pytest.mark.parametrize(("seconds", "ages"), [(29, {}), (30, {"gpu-0": 35})])
def test_a_device_that_was_gone_for_long_stays_gone_while_its_slices_are_away(
    seconds: float, ages: dict[str, float]
) -> None:
    clock, away = HandClock(), judged("gpu-0", unpublished=True)
    memories = Memories(clock)
    memories.see(claim(version="1"))
    memories.observe_present(KEY, (), (), (judged("gpu-0", gone=True),))
    clock.time += seconds
    memories.observe_present(KEY, (), (), (away,))
    clock.time += 5
    memories.observe_present(KEY, (), (), (away,))
    assert gone_ages(memories) == ages
    memories.observe_present(KEY, (), (), (judged("gpu-0"),))
    assert gone_ages(memories) == {}
