"""Since when a claim is closed to its pods, as the versions that a watch brings tell."""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from claimctl.controller.observations.openings import KEPT_SECONDS, OpeningsSeen
from claimctl.kube.informer import Change
from claimctl.reservation.facts.memory import Arrivals, Openings
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    claim,
    deployment_ref,
    group_ref,
    pod_ref,
    tomb,
)
from tests.support.hand_clock import HandClock

WORKLOAD, GROUP = deployment_ref(), group_ref()


class Story:
    """Versions of one claim, one after the other; each comes 10 seconds after the one before."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.seen = OpeningsSeen(self.clock)
        self.claim: ResourceClaim | None = None
        self.version = 0

    def shows(self, *listed: Reference, relist: bool = False, uid: str = "uid-slice") -> None:
        self.clock.time += 10
        self.version += 1
        new = claim(*listed, version=str(self.version))
        new = replace(new, metadata=replace(new.metadata, uid=uid))
        self._tell(new, relist=relist)

    def goes(self) -> None:
        self._tell(None, relist=False)

    def frees(self) -> None:
        self.version += 1
        self._tell(claim(allocated=False, version=str(self.version)), relist=False)

    def noted(self, *, pods: str) -> bool:
        assert self.claim is not None
        return self.seen.history_complete(self.claim, pods)

    def _tell(self, new: ResourceClaim | None, *, relist: bool) -> None:
        self.seen.observe(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, self.claim, new, relist))
        self.claim = new

    def ages(self) -> Openings:
        assert self.claim is not None
        return self.seen.of(self.claim)


def test_a_claim_that_came_by_the_watch_was_never_open() -> None:
    story = Story()
    story.shows()
    assert story.ages() == Openings()


def test_what_a_list_shows_may_have_been_open_just_before() -> None:
    story = Story()
    story.shows(relist=True)
    story.clock.time += 7
    assert story.ages() == Openings(watched_age=7)
    story.shows()
    assert story.ages() == Openings(watched_age=17)
    story.shows(relist=True)
    assert story.ages() == Openings(watched_age=0)


def test_ages_are_measured_from_the_version_without_the_entry() -> None:
    story = Story()
    story.shows(GROUP, WORKLOAD, pod_ref("a"), pod_ref("b"))
    assert story.ages() == Openings(group_age=0, holder_age=0)
    story.shows(WORKLOAD, pod_ref("a"))
    story.shows(tomb("c"))
    story.shows()
    story.clock.time += 1
    ages = {"uid-a": 11.0, "uid-b": 21.0}
    groups = {GROUP.name: 21.0}
    assert story.ages() == Openings(group_age=21, group_ages=groups, holder_age=1, entry_age=ages)


def test_an_entry_that_comes_back_begins_the_wait_anew() -> None:
    story = Story()
    for listed in ((GROUP, pod_ref("a")), (), (GROUP, pod_ref("a")), ()):
        story.shows(*listed)
    assert story.ages() == Openings(
        group_age=0, group_ages={GROUP.name: 0}, holder_age=0, entry_age={"uid-a": 0}
    )


def test_a_tombstone_takes_an_entry_out() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows(tomb("a"))
    assert story.ages().entry_age == {"uid-a": 0}


def test_of_a_version_that_no_watch_has_brought_nothing_is_known() -> None:
    story = Story()
    story.shows()
    assert story.seen.of(claim(version="99")) == Openings(watched_age=0)
    assert OpeningsSeen(story.clock).of(claim()) == Openings(watched_age=0)


def test_a_claim_that_is_made_again_is_another_one() -> None:
    story = Story()
    story.shows(GROUP)
    story.goes()
    story.shows(uid="uid-other")
    assert story.ages() == Openings()


def test_pods_are_remembered_for_longer_than_any_wait_and_not_for_ever() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows()
    story.clock.time += KEPT_SECONDS - 10
    story.shows()
    assert story.ages().entry_age.get("uid-a", inf) == KEPT_SECONDS
    story.shows()
    assert story.ages().entry_age == {}


def arrivals(story: Story) -> Arrivals:
    assert story.claim is not None
    return story.seen.arrivals(story.claim, {"uid-a": 1.0})


def test_an_entry_is_known_from_its_first_sight_on_and_after_its_removal() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows(WORKLOAD, pod_ref("a"), pod_ref("b"))
    story.shows(WORKLOAD, pod_ref("b"))
    found = arrivals(story)
    assert found.entry_age == {"uid-a": 20, "uid-b": 10}
    assert found.pod_age == {"uid-a": 1.0}


def test_a_removed_entry_is_forgotten_after_an_hour() -> None:
    story = Story()
    story.shows(pod_ref("a"), pod_ref("b"))
    story.shows(pod_ref("b"))
    story.clock.time += KEPT_SECONDS
    story.shows(pod_ref("b"))
    assert arrivals(story).entry_age.keys() == {"uid-b"}


def test_after_a_list_the_versions_before_it_are_unknown() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows(pod_ref("a"), relist=True)
    story.clock.time += 5
    assert arrivals(story).claim_age == 5


def test_a_version_that_was_read_live_uses_what_the_watch_has_shown() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    assert story.claim is not None
    live = replace(story.claim, metadata=replace(story.claim.metadata, resource_version="99"))
    assert story.seen.arrivals(live, {}).entry_age.keys() == {"uid-a"}


def test_of_another_claim_of_the_same_name_nothing_is_known() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    assert story.claim is not None
    other = replace(story.claim, metadata=replace(story.claim.metadata, uid="uid-other"))
    assert story.seen.arrivals(other, {}) == Arrivals()


def test_pods_are_noted_since_the_creation_of_the_claim() -> None:
    story = Story()
    story.shows()
    story.shows(pod_ref("a"))
    assert story.noted(pods="1")


def test_after_a_list_that_shows_another_version_pods_may_be_missing() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows(pod_ref("a"), pod_ref("b"), relist=True)
    assert not story.noted(pods="9")
    story.shows(pod_ref("b"))
    assert not story.noted(pods="9")


def test_an_allocation_that_comes_after_the_list_is_known_from_its_beginning() -> None:
    """A pod that was listed before may be bound late: the pod cache has to reach that version."""
    story = Story()
    story.shows(pod_ref("a"), relist=True)
    story.frees()
    story.shows(pod_ref("b"))
    assert not story.noted(pods="")
    assert not story.noted(pods="1")
    assert story.noted(pods="2")


def test_a_version_that_the_watch_has_not_brought_proves_nothing() -> None:
    story = Story()
    story.shows()
    assert story.claim is not None
    later = replace(story.claim, metadata=replace(story.claim.metadata, resource_version="7"))
    assert not story.seen.history_complete(later, "9")
