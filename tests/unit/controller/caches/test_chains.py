"""From a pod up to its workload."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from claimctl.controller.caches.chains import LONGEST, Chains, group_of, owner_in
from claimctl.controller.caches.informers import Caches
from claimctl.reservation.annotation import MOST_CLAIMS
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec


def owner(kind: str, name: str, group: str = "apps/v1") -> OwnerReference:
    return OwnerReference(api_version=group, kind=kind, name=name, uid=f"u-{name}", controller=True)


class Known:
    """A cache of objects: each by its name, with its controller."""

    def __init__(self, **owners: OwnerReference | None) -> None:
        self._owners = owners

    def get(self, name: str, namespace: str) -> ObjectHeader | None:
        if name not in self._owners:
            return None
        above = self._owners[name]
        references = (above,) if above is not None else ()
        meta = ObjectMeta(name=name, uid=f"u-{name}", owner_references=references)
        return ObjectHeader(metadata=meta)


LWS = owner("LeaderWorkerSet", "llm", "leaderworkerset.x-k8s.io/v1")
SET, INNER = owner("StatefulSet", "llm"), owner("StatefulSet", "inner")
LEADER = owner("Pod", "leader", "v1")


def chains(**workloads: Any) -> Chains:
    caches: Any = SimpleNamespace(
        pods=workloads.pop("pods", Known()), replica_sets=Known(), workloads=workloads.get("by", {})
    )
    return Chains(cast(Caches, caches))


def worker(above: OwnerReference | None = INNER) -> Pod:
    claims = (PodResourceClaim(resource_claim_name="slice"), PodResourceClaim(name="own"))
    references = (above,) if above is not None else ()
    return Pod(
        metadata=ObjectMeta(name="w", uid="u-w", owner_references=references),
        spec=PodSpec(resource_claims=claims),
    )


def leaders() -> Chains:
    return chains(
        pods=Known(leader=SET),
        by={
            ("apps", "StatefulSet"): Known(inner=LEADER, llm=LWS),
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Known(llm=None),
        },
    )


def test_a_chain_goes_through_pods() -> None:
    known = leaders()
    assert known.above(worker()) == (INNER, LEADER, SET, LWS)
    assert known.unknown(worker()) is None
    assert known.above(worker(None)) == ()


def test_a_chain_ends_at_an_owner_that_was_not_read() -> None:
    known = chains(by={("apps", "StatefulSet"): Known(inner=LEADER)})
    assert known.above(worker()) == (INNER, LEADER)
    assert known.unknown(worker()) == LEADER
    known.remember(owner_in("", LEADER), LWS)
    assert known.unknown(worker()) == LWS
    known.remember(owner_in("", LWS), None)
    assert known.unknown(worker()) is None
    assert known.above(worker()) == (INNER, LEADER, LWS)


def test_an_object_under_the_name_of_an_owner_is_another() -> None:
    old = replace(INNER, uid="u-earlier")
    assert leaders().above(worker(old)) == (old,)
    assert leaders().unknown(worker(old)) == old


def test_owners_in_a_circle_end() -> None:
    circle = chains(by={("apps", "StatefulSet"): Known(inner=INNER)})
    assert len(circle.above(worker())) == LONGEST


def test_the_claims_of_a_workload_are_those_that_its_pods_have_named() -> None:
    known, llm = leaders(), owner_in("", LWS)
    assert known.claims_of(llm) == frozenset()
    known.note(worker(), known.above(worker()))
    assert known.claims_of(llm) == known.claims_of(owner_in("", LEADER)) == {"slice"}


def test_a_pod_says_nothing_about_what_it_does_not_name_as_it_is() -> None:
    """Whoever makes a pod writes any UID into it, also one of another namespace."""
    known, stranger = leaders(), worker(replace(LWS, name="other"))
    abroad = replace(worker(LWS), metadata=replace(worker(LWS).metadata, namespace="evil"))
    for pod in (stranger, abroad):
        known.note(pod, pod.metadata.owner_references)
        for reference in pod.metadata.owner_references:
            known.remember(owner_in(pod.metadata.namespace, reference), None)
    assert known.claims_of(owner_in("", LWS)) == frozenset()
    assert known.owner_of(LEADER, "") == SET
    bare = chains()
    bare.remember(owner_in("evil", LEADER), None)
    assert bare.unknown(worker(LEADER)) == LEADER


def test_the_names_of_one_owner_are_bounded() -> None:
    known, llm = leaders(), owner_in("", LWS)
    for number in range(5):
        names = [f"{number}-{index}" for index in range(1000)]
        claims = tuple(PodResourceClaim(resource_claim_name=name) for name in names)
        known.note(replace(worker(), spec=PodSpec(resource_claims=claims)), (LWS,))
    assert MOST_CLAIMS < len(known.claims_of(llm)) < 3 * MOST_CLAIMS


def test_the_group_of_an_owner() -> None:
    assert [group_of(each) for each in (LWS, SET, LEADER)] == [
        "leaderworkerset.x-k8s.io",
        "apps",
        "",
    ]
