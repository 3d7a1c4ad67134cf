"""When pods came, and which entries were seen: what listing ahead needs to know."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.observations.arrivals import PodArrivals
from claimctl.controller.observations.openings import KEPT_SECONDS
from claimctl.kube.informer import Change
from claimctl.reservation.snapshot import Arrivals
from claimctl.wire.pods import Pod, PodSchedulingGate
from claimctl.wire.resources import PODS
from tests.support.builders import NAMESPACE, deployment_ref, pending, pod_ref, running
from tests.unit.controller.clock import HandClock
from tests.unit.controller.test_openings import Story


class Watch:
    """The pod cache: each change comes 10 seconds after the one before."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.seen = PodArrivals(self.clock)
        self.pods: dict[str, Pod] = {}

    def shows(self, pod: Pod, *, relist: bool = False) -> None:
        self._tell(pod.metadata.name, pod, relist=relist)

    def goes(self, name: str) -> None:
        self._tell(name, None, relist=False)

    def _tell(self, name: str, new: Pod | None, *, relist: bool) -> None:
        self.clock.time += 10
        old = self.pods.pop(name, None)
        if new is not None:
            self.pods[name] = new
        self.seen.observe(Change(PODS, NAMESPACE, name, old, new, relist))

    def ages(self) -> dict[str, float]:
        self.clock.time += 1
        return self.seen.ages(self.pods.values())


def gated(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduling_gates=(PodSchedulingGate(),)))


def test_a_pod_arrives_with_its_first_watch_event() -> None:
    watch = Watch()
    watch.shows(pending("a"))
    watch.shows(pending("a"))
    assert watch.ages() == {"uid-a": 11}


def test_a_pod_that_a_list_brings_has_no_known_arrival() -> None:
    watch = Watch()
    watch.shows(pending("a"), relist=True)
    watch.shows(pending("a"))
    assert watch.ages() == {}


def test_a_relist_does_not_change_a_known_arrival() -> None:
    watch = Watch()
    watch.shows(pending("a"))
    watch.shows(pending("a"), relist=True)
    assert watch.ages() == {"uid-a": 11}


def test_a_gated_pod_arrives_when_its_last_gate_is_gone() -> None:
    watch = Watch()
    watch.shows(gated(pending("a")))
    assert watch.ages() == {}
    watch.shows(pending("a"))
    assert watch.ages() == {"uid-a": 1}


def test_a_gated_pod_whose_gate_went_unseen_has_no_known_arrival() -> None:
    watch = Watch()
    watch.shows(gated(pending("a")))
    watch.shows(pending("a"), relist=True)
    assert watch.ages() == {}


def test_a_bound_pod_is_forgotten() -> None:
    watch = Watch()
    watch.shows(pending("a"))
    watch.shows(running("a"))
    assert watch.ages() == {}


def test_the_next_pod_of_a_name_arrives_anew() -> None:
    watch = Watch()
    watch.shows(pending("a"))
    watch.goes("a")
    again = pending("a")
    watch.shows(replace(again, metadata=replace(again.metadata, uid="uid-again")))
    assert watch.ages() == {"uid-again": 1}


def arrivals(story: Story) -> Arrivals:
    assert story.claim is not None
    return story.seen.arrivals(story.claim, {"uid-a": 1.0})


def test_an_entry_is_known_from_its_first_sight_on_and_after_its_removal() -> None:
    story = Story()
    story.shows(pod_ref("a"))
    story.shows(deployment_ref(), pod_ref("a"), pod_ref("b"))
    story.shows(deployment_ref(), pod_ref("b"))
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
