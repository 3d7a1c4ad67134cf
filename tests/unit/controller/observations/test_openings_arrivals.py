"""When pods came: what listing ahead needs to know of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.controller.observations.openings import PodArrivals
from claimctl.kube.informer import Change
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from tests.support.builders import NAMESPACE, gated, pending, running
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


POD = pending("a")


@pytest.mark.parametrize(
    ("shown", "age"),
    [
        pytest.param([(POD, False), (POD, False)], 11, id="its first event counts"),
        pytest.param([(POD, True), (POD, False)], None, id="a list brings it"),
        pytest.param([(POD, False), (POD, True)], 11, id="a relist changes nothing"),
        pytest.param([(gated(POD), False)], None, id="it has a gate"),
        pytest.param([(gated(POD), False), (POD, False)], 1, id="its last gate goes"),
        pytest.param([(gated(POD), False), (POD, True)], None, id="its gate goes unseen"),
        pytest.param([(POD, False), (running("a"), False)], None, id="a bound pod is forgotten"),
    ],
)
def test_a_pod_arrives_with_the_event_that_shows_it_without_a_gate(
    shown: list[tuple[Pod, bool]], age: float | None
) -> None:
    """Each with whether a LIST shows it."""
    watch = Watch()
    for pod, relist in shown:
        watch.shows(pod, relist=relist)
    assert watch.ages() == ({} if age is None else {"uid-a": age})


def test_the_next_pod_of_a_name_arrives_anew() -> None:
    watch = Watch()
    watch.shows(pending("a"))
    watch.goes("a")
    again = pending("a")
    watch.shows(replace(again, metadata=replace(again.metadata, uid="uid-again")))
    assert watch.ages() == {"uid-again": 1}
