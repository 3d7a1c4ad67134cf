"""Which pods may be moved at all: one rule a case, with and without its switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claimctl.label_selectors import LabelSelector
from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.budgets import Budgets
from claimctl_reschedule.plan.facts import (
    CRITICAL,
    DO_NOT_DISRUPT,
    EVICT,
    MIRROR,
    PREFER_NO_EVICTION,
    SAFE_TO_EVICT,
    SOURCE,
)
from claimctl_reschedule.plan.fit import Volumes
from claimctl_reschedule.plan.policy import (
    DEFAULT_PROTECTIONS,
    Evictor,
    NoEvictionPolicy,
    Policy,
    Protection,
)
from claimctl_reschedule.plan.protections import Protections
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import PersistentVolumeClaim, SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW, budget, node, pod

DISK = from_plain(
    {"metadata": {"namespace": "team", "name": "d"}, "spec": {"storageClassName": "fast"}},
    PersistentVolumeClaim,
)
PVC = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]}
LOST = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]}
EMPTY = {"volumes": [{"name": "v", "emptyDir": {}}]}
HOST = {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}
CLAIM = {"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "made"}}
WEB = LabelSelector(match_labels={"app": "web"})


def lifting(*protections: Protection) -> Evictor:
    return Evictor(protections=DEFAULT_PROTECTIONS - frozenset(protections))


def adding(*protections: Protection, **more: Any) -> Evictor:
    return Evictor(protections=DEFAULT_PROTECTIONS | frozenset(protections), **more)


def judged(asked: SchedulingPod, evictor: Evictor | None = None, **more: Any) -> Ground | None:
    on_a = [each for each in (asked, pod("sibling", "a")) if each.spec.node_name]
    world = World([node("a", labels={"pool": "x"})], on_a, {"team": {"tier": "front"}})
    rules = Protections(
        evictor=evictor or Evictor(),
        policy=Policy(),
        world=world,
        budgets=Budgets([budget("b", 1, {"matchLabels": {"app": "db"}})]),
        volumes=Volumes([DISK], []),
        now=NOW,
    )
    seen = world.pods.get(asked.metadata.uid) or world.seen(asked)
    found = replace(rules, **more).obstacle(seen)
    return found.reason if found else None


DAEMON = pod("p", "a", kind="DaemonSet")
HIGH = pod("p", "a", priority=2_000_000_000)
MARKED = pod("p", "a", namespace="kube-system", annotations={CRITICAL: ""})
CUSTOM = pod("p", "a", kind="Rollout")
CASES: dict[str, tuple[SchedulingPod, Evictor | None, Ground | None]] = {
    "an ordinary pod": (pod("p", "a"), None, None),
    "of a StatefulSet": (pod("p", "a", kind="StatefulSet"), None, None),
    "of a Job": (pod("p", "a", kind="Job"), None, None),
    "of a ReplicationController": (pod("p", "a", kind="ReplicationController"), None, None),
    "a mirror pod": (pod("p", "a", annotations={MIRROR: "x"}), None, Ground.STATIC),
    "a static pod": (pod("p", "a", annotations={SOURCE: "file"}), None, Ground.STATIC),
    "a pod from the API": (pod("p", "a", annotations={SOURCE: "api"}), None, None),
    "a pod of its node": (pod("p", "a", kind="Node"), None, Ground.STATIC),
    "terminating": (pod("p", "a", deleting=True), None, Ground.TERMINATING),
    "without a node": (pod("p"), None, Ground.NOT_SCHEDULED),
    "finished": (pod("p", "a", phase="Succeeded"), None, Ground.FINISHED),
    "of an unknown scheduler": (
        pod("p", "a", spec={"schedulerName": "own"}),
        None,
        Ground.UNKNOWN_SCHEDULER,
    ),
    "requests that cannot be read": (pod("p", "a", cpu="x"), None, Ground.UNREADABLE),
    "critical by priority": (HIGH, None, Ground.CRITICAL),
    "critical, lifted": (HIGH, lifting(Protection.SYSTEM_CRITICAL), None),
    "just below critical": (pod("p", "a", priority=1_999_999_999), None, None),
    "critical by its mark": (MARKED, None, Ground.CRITICAL),
    "an ordinary pod of the system": (pod("p", "a", namespace="kube-system"), None, None),
    "the mark in another namespace": (pod("p", "a", annotations={CRITICAL: ""}), None, None),
    "a bare pod": (pod("p", "a", owner=None), None, Ground.NO_OWNER),
    "an owner of another kind": (CUSTOM, None, Ground.NO_OWNER),
    "a failed bare pod": (pod("p", "a", owner=None, phase="Failed"), None, Ground.FINISHED),
    "an owner of another kind that the policy names": (
        CUSTOM,
        Evictor(replacing_owners=frozenset({("apps", "Rollout")})),
        None,
    ),
    "a failed bare pod, lifted": (
        pod("p", "a", owner=None, phase="Failed"),
        lifting(Protection.FAILED_BARE),
        Ground.FINISHED,
    ),
    "of a DaemonSet": (DAEMON, None, Ground.DAEMON_SET),
    "of a DaemonSet, lifted": (DAEMON, lifting(Protection.DAEMON_SETS), None),
    "an emptyDir": (pod("p", "a", spec=EMPTY), None, Ground.LOCAL_STORAGE),
    "a hostPath": (pod("p", "a", spec=HOST), None, Ground.LOCAL_STORAGE),
    "local storage, lifted": (pod("p", "a", spec=HOST), lifting(Protection.LOCAL_STORAGE), None),
    "a PersistentVolumeClaim": (pod("p", "a", spec=PVC), None, None),
    "a PersistentVolumeClaim, protected": (
        pod("p", "a", spec=PVC),
        adding(Protection.VOLUME_CLAIMS),
        Ground.VOLUME_CLAIM,
    ),
    "a protected storage class": (
        pod("p", "a", spec=PVC),
        adding(Protection.VOLUME_CLAIMS, protected_storage_classes=("fast",)),
        Ground.STORAGE_CLASS,
    ),
    "another storage class": (
        pod("p", "a", spec=PVC),
        adding(Protection.VOLUME_CLAIMS, protected_storage_classes=("slow",)),
        None,
    ),
    "an unknown storage class": (
        pod("p", "a", spec=LOST),
        adding(Protection.VOLUME_CLAIMS, protected_storage_classes=("slow",)),
        Ground.STORAGE_CLASS,
    ),
    "a claim": (pod("p", "a", spec=CLAIM), None, None),
    "a claim, protected": (
        pod("p", "a", spec=CLAIM),
        adding(Protection.RESOURCE_CLAIMS),
        Ground.RESOURCE_CLAIM,
    ),
    "a claim of an extended resource, protected": (
        pod("p", "a", status=EXTENDED),
        adding(Protection.RESOURCE_CLAIMS),
        Ground.RESOURCE_CLAIM,
    ),
    "without a budget, protected": (
        pod("p", "a"),
        adding(Protection.WITHOUT_BUDGET),
        Ground.NO_BUDGET,
    ),
    "with a budget": (pod("p", "a", "db"), adding(Protection.WITHOUT_BUDGET), None),
    "selected by its labels": (pod("p", "a"), Evictor(label_selector=WEB), None),
    "not selected by its labels": (
        pod("p", "a", "db"),
        Evictor(label_selector=WEB),
        Ground.LABELS,
    ),
    "not selected by its namespace": (
        pod("p", "a"),
        Evictor(namespace_label_selector=WEB),
        Ground.NAMESPACE_LABELS,
    ),
    "selected by its namespace": (
        pod("p", "a"),
        Evictor(namespace_label_selector=LabelSelector(match_labels={"tier": "front"})),
        None,
    ),
    "too few replicas": (pod("p", "a"), Evictor(min_replicas=3), Ground.MIN_REPLICAS),
    "enough replicas": (pod("p", "a"), Evictor(min_replicas=2), None),
    "too young": (pod("p", "a", age=59.0), Evictor(min_pod_age_seconds=60), Ground.MIN_AGE),
    "old enough": (pod("p", "a", age=60.0), Evictor(min_pod_age_seconds=60), None),
    "not to be disrupted, by Karpenter's annotation": (
        pod("p", "a", annotations={DO_NOT_DISRUPT: "true"}),
        None,
        Ground.DO_NOT_DISRUPT,
    ),
    "not to be disrupted, by cluster-autoscaler's annotation": (
        pod("p", "a", annotations={SAFE_TO_EVICT: "false"}),
        None,
        Ground.DO_NOT_DISRUPT,
    ),
    "safe to evict": (pod("p", "a", annotations={SAFE_TO_EVICT: "true"}), None, None),
    "prefers no eviction": (pod("p", "a", annotations={PREFER_NO_EVICTION: ""}), None, None),
    "prefers no eviction, and that is an order": (
        pod("p", "a", annotations={PREFER_NO_EVICTION: ""}),
        Evictor(no_eviction_policy=NoEvictionPolicy.MANDATORY),
        Ground.PREFERS_NO_EVICTION,
    ),
    "the evict annotation lifts protections": (
        pod("p", "a", owner=None, annotations={EVICT: "true"}, spec=HOST, age=1.0),
        Evictor(min_pod_age_seconds=60, min_replicas=9, label_selector=WEB),
        None,
    ),
    "the evict annotation does not lift all": (
        pod("p", "a", annotations={EVICT: "true", MIRROR: "x"}),
        None,
        Ground.STATIC,
    ),
    "the evict annotation does not overrule the other annotations": (
        pod("p", "a", annotations={EVICT: "true", DO_NOT_DISRUPT: "true"}),
        None,
        Ground.DO_NOT_DISRUPT,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_rule(name: str) -> None:
    asked, evictor, expected = CASES[name]
    assert judged(asked, evictor) is expected


def test_the_priority_threshold() -> None:
    assert judged(pod("p", "a", priority=9), priority_threshold=10) is None
    assert judged(pod("p", "a", priority=10), priority_threshold=10) is Ground.PRIORITY


def test_the_nodes_of_the_policy() -> None:
    chosen = LabelSelector(match_labels={"pool": "x"})
    assert judged(pod("p", "a"), policy=Policy(node_selector=chosen)) is None
    assert judged(pod("p", "a"), policy=Policy(node_selector=WEB)) is Ground.NODE_NOT_SELECTED
