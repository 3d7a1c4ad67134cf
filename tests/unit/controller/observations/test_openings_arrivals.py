"""When pods came: what listing ahead needs to know of them."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.observations.openings import PodArrivals
from claimctl.kube.informer import Change
from claimctl.wire.base import Present
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from tests.support.builders import NAMESPACE, pending, running
from tests.support.hand_clock import HandClock


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
    return replace(pod, spec=replace(pod.spec, scheduling_gates=(Present(),)))


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
