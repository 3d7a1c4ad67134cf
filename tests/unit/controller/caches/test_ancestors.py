"""The objects above a workload, as the caches show them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.controller.caches.ancestors import Ancestry
from claimctl.controller.caches.chains import Chains
from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.kinds import KindCache, KindState
from claimctl.kube.errors import Forbidden
from claimctl.reservation.facts.ancestors import OWN, AnnotationStanding
from claimctl.reservation.kinds.rules import Rule
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.reservations import RESERVE_ANNOTATION, ClaimReservation
from tests.support.builders import NAMESPACE
from tests.support.counting_server import pod_body
from tests.unit.controller.cluster import define_custom_resources, filled, groups_server

LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
GANG = ("acme.example", "Gang")
RULE = shipped_rules()[LWS]
COPYING = Rule(*GANG, "gangs", copies_annotations=True, source="WorkloadKind gangs")


def reference(kind: tuple[str, str], name: str) -> OwnerReference:
    group = f"{kind[0]}/v1" if kind[0] else "v1"
    return OwnerReference(
        api_version=group, kind=kind[1], name=name, uid=f"u-{name}", controller=True
    )


def meta(name: str, above: OwnerReference | None = None, *, annotated: bool = True) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=f"u-{name}",
        annotations={RESERVE_ANNOTATION: "*"} if annotated else None,
        owner_references=() if above is None else (above,),
    )


class WatchedAncestors:
    """A cache of objects by name."""

    def __init__(
        self, *metas: ObjectMeta, synced: bool = True, trouble: Exception | None = None
    ) -> None:
        self._known = {it.name: ObjectHeader(metadata=it) for it in metas}
        self.synced, self.trouble = synced, trouble

    def get(self, name: str, namespace: str) -> ObjectHeader | None:
        return self._known.get(name)

    def items(self) -> tuple[ObjectHeader, ...]:
        return tuple(self._known.values())


def ancestry(
    workloads: dict[tuple[str, str], Any],
    states: dict[tuple[str, str], KindState] | None = None,
    made: tuple[ClaimReservation, ...] = (),
) -> Ancestry:
    kinds = KindCache(lambda resource, rule: cast(Any, None), workloads)
    kinds.states |= states or {}
    workloads.setdefault(("apps", "StatefulSet"), WatchedAncestors())

    def workload(key: Any) -> ObjectHeader | None:
        informer = workloads.get((key.api_group, key.kind))
        return informer.get(key.name, key.namespace) if informer is not None else None

    caches: Any = SimpleNamespace(
        pods=WatchedAncestors(),
        replica_sets=WatchedAncestors(),
        workloads=workloads,
        workload=workload,
        kinds=kinds,
        kind_rules=WatchedAncestors(),
        reservations_for=lambda key: made,
    )
    return Ancestry(cast(Caches, caches), Chains(caches))


UNDER_LWS = meta("inner", reference(LWS, "llm"))
HELD = ClaimReservation(metadata=ObjectMeta(name="r", owner_references=(reference(LWS, "llm"),)))
NO_RIGHT = KindState(RULE, problem="no right", forbidden=True)
LOST = WatchedAncestors(trouble=Forbidden("no", "/apis"))


@pytest.mark.parametrize(
    ("informer", "state", "made", "expected"),
    [
        # it is watched, has the annotation or not, and copies
        (WatchedAncestors(meta("llm")), KindState(RULE), (), AnnotationStanding.ABOVE),
        (
            WatchedAncestors(meta("llm", annotated=False)),
            KindState(RULE),
            (),
            AnnotationStanding.ABOVE,
        ),
        # the cache is late, or has another object of that name
        (WatchedAncestors(), KindState(RULE), (), AnnotationStanding.OPEN),
        # a controller that has just started knows nothing of the kind yet
        (None, None, (), AnnotationStanding.OPEN),
        (WatchedAncestors(synced=False), KindState(RULE), (), AnnotationStanding.OPEN),
        # it may not be read, from the start or not any more
        (None, NO_RIGHT, (), AnnotationStanding.UNREAD),
        (LOST, KindState(RULE), (), AnnotationStanding.UNREAD),
        (LOST, KindState(RULE), (HELD,), AnnotationStanding.OPEN),
    ],
)
def test_who_decides_about_a_copy(
    informer: WatchedAncestors | None,
    state: KindState | None,
    made: tuple[ClaimReservation, ...],
    expected: AnnotationStanding,
) -> None:
    workloads = {LWS: informer} if informer is not None else {}
    states = {LWS: state} if state is not None else {}
    seen = ancestry(workloads, states, made)
    assert seen.who_decides(RESERVE_ANNOTATION, UNDER_LWS).standing is expected


def test_an_owner_of_a_kind_that_nobody_watches_is_left_out() -> None:
    assert ancestry({}).who_decides(RESERVE_ANNOTATION, meta("a", reference(GANG, "g"))) == OWN
    assert ancestry({}).who_decides(RESERVE_ANNOTATION, meta("a")) == OWN


def test_a_users_rule_says_whether_a_kind_copies() -> None:
    watched = {GANG: WatchedAncestors(meta("g", annotated=False))}
    seen = ancestry(watched, {GANG: KindState(COPYING)})
    (above,) = seen.of(meta("a", reference(GANG, "g")))
    assert (above.copies, above.annotations) == (True, {})


async def test_a_pod_above_that_uses_no_claim_is_read_live_and_once() -> None:
    """The chain of a group's workers goes through the pod of their leader."""
    made, _ = groups_server()
    define_custom_resources(made)
    leader = pod_body("leader")
    leader["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "llm",
            "uid": "u",
            "controller": True,
        }
    ]
    leader["spec"].pop("resourceClaims", None)
    uid = made.create("pods", leader)["metadata"]["uid"]
    caches = await filled(made)
    reads: list[str] = []

    def count(point: FaultPoint) -> Fault | None:
        reads.extend([point.name] if (point.verb, point.plural) == ("get", "pods") else [])
        return None

    made.handler.fault = count
    owner = OwnerReference(api_version="v1", kind="Pod", name="leader", uid=uid, controller=True)
    below, seen = meta("inner", owner), Ancestry(caches, Chains(caches))
    assert seen.of(below) == ()
    for _ in range(2):
        await seen.learn(made.client, below)
    assert [(it.kind, it.name, it.seen) for it in seen.of(below)] == [("StatefulSet", "llm", False)]
    assert reads == ["leader"]
