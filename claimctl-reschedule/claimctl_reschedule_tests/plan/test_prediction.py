"""Where the scheduler is expected to put a replacement."""

from __future__ import annotations

from collections import Counter

from claimctl_reschedule.plan.fit import Fitter, Volumes
from claimctl_reschedule.plan.inventory import Placement
from claimctl_reschedule.plan.prediction import Landing, Predictor, describe
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.world import HOSTNAME, World
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.no_devices import NoDevices
from claimctl_reschedule_tests.support.scheduling import node, pod

CLAIM = {"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}


class Free(NoDevices):
    """Devices are free on some nodes; ``obstacles`` has what is said of the others."""

    def __init__(self, **obstacles: Ground) -> None:
        super().__init__()
        self.obstacles = obstacles
        self.asked: list[str] = []

    def place(self, pod: SchedulingPod, node: str) -> Placement | Obstacle:
        self.asked.append(node)
        if node in self.obstacles:
            return Obstacle(self.obstacles[node], node)
        return Placement(pod.metadata.uid, node)


def predicted(
    nodes: list[SchedulingNode],
    leaving: SchedulingPod,
    *others: SchedulingPod,
    devices: NoDevices | None = None,
    closed: bool = False,
) -> str | Ground:
    world = World(nodes, [leaving, *others], {})
    predictor = Predictor(world, Fitter(world, Volumes([], [])), devices or NoDevices())
    seen = world.pods[leaving.metadata.uid]
    source = seen.node
    world.remove(seen)
    found = predictor.landing(seen, source, closed=closed)
    return found.node if isinstance(found, Landing) else found.reason


def test_the_best_node_is_expected() -> None:
    nodes = [node("a", cpu="4"), node("b", cpu="6"), node("c", cpu="8")]
    assert predicted(nodes, pod("p", "a", owner=None, cpu="2")) == "c"


def test_a_replacement_may_return() -> None:
    nodes = [node("a", cpu="8"), node("b", cpu="4")]
    assert predicted(nodes, pod("p", "a", owner=None, cpu="2")) is Ground.STAYS
    assert predicted(nodes, pod("p", "a", owner=None, cpu="2"), closed=True) == "b"


def test_among_equals_it_is_expected_to_return() -> None:
    nodes = [node("a"), node("b")]
    assert predicted(nodes, pod("p", "b", owner=None)) is Ground.STAYS


def test_no_other_node() -> None:
    nodes = [node("a"), node("b", unschedulable=True)]
    assert predicted(nodes, pod("p", "a")) is Ground.NO_OTHER_NODE
    assert predicted(nodes[:1], pod("p", "a"), closed=True) is Ground.NO_OTHER_NODE


def test_a_source_that_does_not_fit_any_more_is_no_choice() -> None:
    nodes = [node("a", unschedulable=True), node("b", cpu="1")]
    assert predicted(nodes, pod("p", "a")) == "b"


def test_what_cannot_be_judged() -> None:
    unknown = {"tolerations": [{"key": "k", "operator": "Lt", "value": "3"}]}
    assert predicted([node("a"), node("b")], pod("p", "a", spec=unknown)) is Ground.FIT_UNKNOWN


def claimed() -> SchedulingPod:
    return pod("p", "a", owner=None, cpu="2", spec=CLAIM)


NODES = [node("a", cpu="4"), node("b", cpu="6"), node("c", cpu="8")]


def test_devices_decide_after_the_score() -> None:
    devices = Free(c=Ground.NO_DEVICES)
    assert predicted(NODES, claimed(), devices=devices) == "b"
    assert devices.asked == ["c", "b"]


def test_the_source_is_where_the_devices_are() -> None:
    devices = Free(b=Ground.NO_DEVICES, c=Ground.NO_PLACE_IN_CLAIM)
    assert predicted(NODES, claimed(), devices=devices) is Ground.NO_PLACE_IN_CLAIM
    assert predicted(NODES, claimed(), devices=devices, closed=True) is Ground.NO_PLACE_IN_CLAIM
    worse = [node("a", cpu="8"), node("b", cpu="4")]
    assert predicted(worse, claimed(), devices=Free(b=Ground.NO_DEVICES)) is Ground.STAYS


def test_no_node_has_devices() -> None:
    devices = Free(a=Ground.NO_DEVICES, b=Ground.NO_DEVICES, c=Ground.NO_PLACE_IN_CLAIM)
    assert predicted(NODES, claimed(), devices=devices) is Ground.NO_PLACE_IN_CLAIM


def test_devices_that_cannot_be_judged_stop_the_move() -> None:
    devices = Free(c=Ground.FIT_UNKNOWN)
    assert predicted(NODES, claimed(), devices=devices) is Ground.FIT_UNKNOWN


def test_a_pod_without_claims_asks_about_one_node() -> None:
    devices = Free()
    assert predicted(NODES, pod("p", "a", owner=None, cpu="2"), devices=devices) == "c"
    assert devices.asked == ["c"]


def test_in_a_large_cluster_some_nodes_are_looked_at() -> None:
    """The source and 100 others; the next look begins behind the last."""
    nodes = [node(f"n{number:03}") for number in range(400)]
    world = World(nodes, [], {})
    predictor = Predictor(world, Fitter(world, Volumes([], [])), NoDevices())

    def landing(closed: bool) -> str:
        found = predictor.landing(world.seen(pod("p", owner=None)), "n399", closed=closed)
        return found.node if isinstance(found, Landing) else found.reason

    assert landing(closed=True) == "n000"
    assert landing(closed=False) == "WouldReturn"
    assert landing(closed=True) == "n200"
    assert landing(closed=True) == "n000"


def test_a_replicaset_replaces_the_pod_while_it_still_ends() -> None:
    """It counts on its node until then, so that the other node is better."""
    nodes = [node("a", cpu="9"), node("b", cpu="8")]
    for kind, expected in (("ReplicaSet", "b"), ("StatefulSet", Ground.STAYS)):
        assert predicted(nodes, pod("p", "a", kind=kind, cpu="2")) == expected


def test_nodes_that_score_alike_are_told() -> None:
    nodes = [node("a", cpu="4"), node("b", cpu="8"), node("c", cpu="8"), node("d", cpu="6")]
    world = World(nodes, [], {})
    for claims, also in (({}, ("c",)), (CLAIM, ())):
        devices = Taken() if claims else NoDevices()
        predictor = Predictor(world, Fitter(world, Volumes([], [])), devices)
        landing = predictor.landing(world.seen(pod("p", owner=None, cpu="2", spec=claims)), "a")
        assert isinstance(landing, Landing)
        assert (landing.node, landing.also) == ("b", also)


class Taken(NoDevices):
    """Every claim gets a device."""

    def place(self, pod: SchedulingPod, node: str) -> Placement:
        return Placement(pod.metadata.uid, node, devices=(("d", node, "0"),))


def test_problems_are_told_by_frequency() -> None:
    problems = Counter({"taint": 2, "insufficient cpu": 3, "cordoned": 2})
    assert describe(problems, 8) == "of 8 nodes: 3 insufficient cpu, 2 cordoned, 2 taint"
    assert describe(Counter(), 1) == "of 1 node"


def test_the_pod_that_is_ending_counts_for_a_replacement_that_is_made_at_once() -> None:
    """Scores of pods near each other are relative: with two of them on ``a``, ``b`` is not so bad.

    A StatefulSet makes the replacement when the pod has ended, and ``c`` is the best by far.
    """
    warns = [("k", "PreferNoSchedule"), ("l", "PreferNoSchedule"), ("m", "PreferNoSchedule")]
    nodes = [node("a"), node("b"), node("c", taints=(warns[0],)), node("d", taints=tuple(warns))]
    away = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    preferred = [{"weight": 10, "podAffinityTerm": away}]
    even = {
        "maxSkew": 100,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": away["labelSelector"],
    }
    spec = {
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        },
        "topologySpreadConstraints": [even],
    }
    full = pod("full", "c", owner=None, cpu="7800m")
    for kind, expected in (("ReplicaSet", "b"), ("StatefulSet", "c")):
        leaving, *others = [
            pod(f"p{number}", name, kind=kind, spec={"nodeName": name, **spec})
            for number, name in enumerate("aab")
        ]
        assert predicted(nodes, leaving, *others, full) == expected
