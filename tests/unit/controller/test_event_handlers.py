"""Which keys a change in the cluster puts into the queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from kube_in_process.options import Preset

from claimctl.controller.caches.chains import Chains, Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.event_handlers import Queues, Triggers
from claimctl.controller.keys import ClaimKey, WorkloadKey
from claimctl.controller.observations.observations import Observations
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.base import from_plain
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    POD_GROUP_ANNOTATION,
    RESERVE_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
)
from claimctl.wire.resources import CLAIMRESERVATIONS
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.counting_server import CountingServer, pod_body, server
from tests.support.spoiling import Spoiling
from tests.unit.controller.cluster import furnish

pytestmark = pytest.mark.virtual_limit(60)
CLAIM_KEY, WORKLOAD_KEY = f"claim {NAMESPACE}/{CLAIM}", f"workload {NAMESPACE}/train"


@dataclass
class Followed:
    """The handlers of a cluster where a Deployment's pod uses a reserved claim."""

    server: CountingServer
    spoilt: Spoiling
    triggers: Triggers
    seen: Observations
    told: set[str] = field(default_factory=set)
    hurried: list[str] = field(default_factory=list)
    """Which queues without the batch window got a claim: urgent, or soon."""

    async def after(self, change: Callable[[CountingServer], object]) -> set[str]:
        """The keys that a change puts into the queues."""
        self.told.clear()
        self.hurried.clear()
        change(self.server)
        await asyncio.sleep(1.0)
        return set(self.told)

    def ghosts(self) -> list[str]:
        """The names of the claim's ghosts."""
        return [each.pod.name for each in self.seen.ghosts.of(ClaimKey(NAMESPACE, CLAIM))]


@asynccontextmanager
async def following(
    before: Callable[[CountingServer], object] = lambda _: None, *, leads: bool = True
) -> AsyncIterator[Followed]:
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    before(made)
    spoilt, clock = Spoiling(made.transport), LoopClock(NOW)
    caches = Caches(Client(spoilt, clock, rng=Random(0)), clock, Random(0))
    told: set[str] = set()
    hurried: list[str] = []

    def hurry(queue: str, key: ClaimKey) -> None:
        told.add(f"claim {key}")
        hurried.append(queue)

    queues = Queues(
        claims=lambda key: told.add(f"claim {key}"),
        urgent=lambda key: hurry("urgent", key),
        soon=lambda key: hurry("soon", key),
        workloads=lambda key: told.add(f"workload {key.namespace}/{key.name}"),
        plans=lambda key: told.add(f"plan {key.name}"),
        groups=lambda key: told.add(f"group {key.namespace}/{key.name}"),
        new_groups=lambda key: told.add(f"new group {key.namespace}/{key.name}"),
    )
    seen = Observations(clock)
    triggers = Triggers(caches, seen, queues, Climber(made.client, Chains(caches)))
    informers = [*caches.informers(), caches.groups.follow()]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    for each in informers:
        await each.wait_synced()
    if leads:
        triggers.lead()
    yield Followed(made, spoilt, triggers, seen, told, hurried)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _listing(*entries: dict[str, str]) -> Callable[[CountingServer], object]:
    """Create a claim without ClaimReservation that lists these."""

    def change(made: CountingServer) -> object:
        request = {"name": "tpu", "exactly": {"deviceClassName": "tpu.example.com"}}
        spec = {"devices": {"requests": [request]}}
        meta = {"name": "other", "namespace": NAMESPACE}
        made.create("resourceclaims", {"metadata": meta, "spec": spec})
        claim = made.admin.get("resourceclaims", NAMESPACE, "other")
        claim["status"] = {"allocation": {"devices": {}}, "reservedFor": list(entries)}
        return made.admin.update("resourceclaims", claim, "status")

    return change


async def test_a_change_of_a_workload_ends_what_a_live_read_told_about_it() -> None:
    """Also a change that matters to no reservation: the workload exists."""
    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")

    def scale_status(made: CountingServer) -> object:
        deployment = made.admin.get("deployments", NAMESPACE, "train")
        deployment["status"] = {"replicas": 1}
        return made.admin.update("deployments", deployment, "status")

    async with following() as on:
        on.seen.gone_workloads[key] = None
        assert key in on.seen.gone_workloads
        assert await on.after(scale_status) == set()
        assert key not in on.seen.gone_workloads


POD_ENTRY = {"resource": "pods", "name": "alone", "uid": "uid-alone"}
WORKLOAD_ENTRY = {
    "apiGroup": "apps",
    "resource": "deployments",
    "name": "other",
    "uid": "uid-other",
}
OTHER_KEY = f"claim {NAMESPACE}/other"


@pytest.mark.parametrize(
    ("entries", "concerns"),
    [
        pytest.param((), False, id="a list with no entry"),
        pytest.param((POD_ENTRY,), False, id="a list of pods"),
        pytest.param((WORKLOAD_ENTRY,), True, id="a workload"),
        pytest.param((POD_ENTRY, WORKLOAD_ENTRY), True, id="a workload among pods"),
    ],
)
async def test_a_claim_without_reservation_concerns_claimctl_if_it_lists_a_workload(
    entries: tuple[dict[str, str], ...], concerns: bool
) -> None:
    async with following(_listing(*entries)) as followed:
        assert (OTHER_KEY in followed.told) is concerns
    async with following() as followed:
        assert (OTHER_KEY in await followed.after(_listing(*entries))) is concerns


DESCRIBED = [{"name": "tpu-0", "attributes": {"color": {"string": "red"}}}]
EVICTING = [{"name": "tpu-0", "taints": [{"key": "broken", "effect": "NoExecute"}]}]


def _slice(made: CountingServer, pool: str = "node-0", devices: object = EVICTING) -> object:
    spec = {
        "driver": "tpu.example.com",
        "pool": {"name": pool, "resourceSliceCount": 1},
        "nodeName": "node-0",
        "devices": devices,
    }
    return made.create("resourceslices", {"metadata": {"name": "devices"}, "spec": spec})


def _sound_slice(made: CountingServer) -> object:
    return _slice(made, devices=[{"name": "tpu-0"}])


def _change_slice(**change: Any) -> Callable[[CountingServer], object]:
    return lambda made: made.admin.patch("resourceslices", "", "devices", change)


@pytest.mark.parametrize(
    ("before", "change", "told"),
    [
        pytest.param(lambda _: None, _slice, True, id="created"),
        pytest.param(lambda _: None, lambda made: _slice(made, "p"), False, id="another pool"),
        pytest.param(lambda _: None, _sound_slice, True, id="created without taints"),
        pytest.param(
            _sound_slice, _change_slice(spec={"devices": DESCRIBED}), False, id="an attribute"
        ),
        pytest.param(
            _sound_slice, _change_slice(spec={"devices": []}), True, id="its device is gone"
        ),
        pytest.param(
            _sound_slice, _change_slice(spec={"devices": EVICTING}), True, id="a device is tainted"
        ),
        pytest.param(_slice, _change_slice(metadata={"labels": {"a": "b"}}), False, id="a label"),
        pytest.param(
            _slice, lambda made: made.admin.delete("resourceslices", "", "devices"), True, id="gone"
        ),
    ],
)
async def test_devices_matter_to_claims_that_are_allocated_in_their_pool(
    before: Callable[[CountingServer], object],
    change: Callable[[CountingServer], object],
    told: bool,
) -> None:
    async with following(before) as followed:
        assert await followed.after(change) == ({CLAIM_KEY} if told else set())


def _plan(*namespaces: str) -> Callable[[CountingServer], object]:
    body = {"metadata": {"name": "claimctl"}, "spec": {"namespaces": list(namespaces)}}
    return lambda made: made.create("downgradeplans", body)


def _tell_of_plan(phase: str) -> Callable[[CountingServer], object]:
    status = {"status": {"phase": phase, "claims": []}}
    return lambda made: made.admin.patch("downgradeplans", "", "claimctl", status, "status")


@pytest.mark.parametrize(
    ("before", "change", "told"),
    [
        pytest.param((), _plan(), {"plan claimctl", CLAIM_KEY}, id="a plan for all namespaces"),
        pytest.param(
            (), _plan(NAMESPACE), {"plan claimctl", CLAIM_KEY}, id="a plan for this namespace"
        ),
        pytest.param((), _plan("default"), {"plan claimctl"}, id="a plan for another namespace"),
        pytest.param(
            (_plan(),), _tell_of_plan("Frozen"), {"plan claimctl", CLAIM_KEY}, id="another phase"
        ),
        pytest.param(
            (_plan(), _tell_of_plan("Frozen")),
            lambda made: made.admin.patch(
                "downgradeplans", "", "claimctl", {"metadata": {"labels": {"a": "b"}}}
            ),
            {"plan claimctl"},
            id="the same phase",
        ),
        pytest.param(
            (_plan(),),
            lambda made: made.admin.delete("downgradeplans", "", "claimctl"),
            {"plan claimctl", CLAIM_KEY},
            id="a plan that is gone",
        ),
    ],
)
async def test_a_plan_matters_to_its_claims_when_it_comes_goes_or_changes_its_phase(
    before: tuple[Callable[[CountingServer], object], ...],
    change: Callable[[CountingServer], object],
    told: set[str],
) -> None:
    def prepare(made: CountingServer) -> None:
        for each in before:
            each(made)

    async with following(prepare) as followed:
        assert await followed.after(change) == told
    async with following(prepare, leads=False) as followed:
        assert await followed.after(change) == set()


@pytest.mark.parametrize(
    ("plural", "name", "told"),
    [
        ("downgradeplans", "claimctl", True),
        ("nodes", "node-9", False),
    ],
)
async def test_a_plan_that_cannot_be_read_is_looked_at(plural: str, name: str, told: bool) -> None:
    async with following(_plan()) as followed:
        followed.spoilt.spoil(plural, name)

        def change(made: CountingServer) -> object:
            if plural == "nodes":
                return made.create("nodes", {"metadata": {"name": name}})
            return made.admin.patch(plural, "", name, {"metadata": {"labels": {"a": "b"}}})

        assert ("plan claimctl" in await followed.after(change)) is told


def _annotated(**annotations: str) -> Callable[[CountingServer], object]:
    """Create another Deployment with these annotations."""

    def change(made: CountingServer) -> object:
        body = made.admin.get("deployments", NAMESPACE, "train")
        body["metadata"] |= {"name": "other", "annotations": annotations}
        for key in ("uid", "resourceVersion", "creationTimestamp", "generation"):
            body["metadata"].pop(key, None)
        return made.create("deployments", {"metadata": body["metadata"], "spec": body["spec"]})

    return change


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        pytest.param({}, False, id="neither annotated nor the owner of a reservation"),
        pytest.param({RESERVE_ANNOTATION: "true"}, True, id="it asks for a reservation"),
        pytest.param({POD_GROUP_ANNOTATION: "inject"}, True, id="it asks for its PodGroup's name"),
    ],
)
async def test_a_workload_is_looked_at_if_an_annotation_asks_for_something(
    annotations: dict[str, str], told: bool
) -> None:
    async with following() as followed:
        found = await followed.after(_annotated(**annotations))
        assert (f"workload {NAMESPACE}/other" in found) is told


async def test_a_workload_that_owns_a_reservation_is_looked_at() -> None:
    def own(made: CountingServer) -> None:
        uid = made.admin.get("deployments", NAMESPACE, "train")["metadata"]["uid"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "train",
            "uid": uid,
            "controller": True,
        }
        meta = {"metadata": {"ownerReferences": [owner]}}
        made.admin.patch("claimreservations", NAMESPACE, "train-slice", meta)

    async with following() as followed:
        assert WORKLOAD_KEY not in followed.told
    async with following(own) as followed:
        assert WORKLOAD_KEY in followed.told


async def test_the_status_of_a_workload_matters_only_for_jobs() -> None:
    def told(made: CountingServer) -> object:
        status = {"status": {"observedGeneration": 7}}
        return made.admin.patch("deployments", NAMESPACE, "train", status, "status")

    def scaled(made: CountingServer) -> object:
        return made.admin.patch("deployments", NAMESPACE, "train", {"spec": {"replicas": 5}})

    async with following() as followed:
        assert await followed.after(told) == set()
        assert CLAIM_KEY in await followed.after(scaled)


def _claim_status(**status: Any) -> Callable[[CountingServer], object]:
    return lambda made: made.admin.patch(
        "resourceclaims", NAMESPACE, CLAIM, {"status": status}, "status"
    )


def _group(made: CountingServer) -> object:
    spec = {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [{"name": "tpu", "resourceClaimName": CLAIM}],
    }
    meta = {"name": "train", "namespace": NAMESPACE}
    return made.create("podgroups", {"metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(_claim_status(reservedFor=[]), False, id="pods are listed no more"),
        pytest.param(
            _claim_status(reservedFor=None, allocation=None), True, id="the allocation is gone"
        ),
    ],
)
async def test_a_group_that_shares_a_claim_is_looked_at_when_the_allocation_comes_or_goes(
    change: Callable[[CountingServer], object], told: bool
) -> None:
    async with following(_group) as followed:
        found = await followed.after(change)
        assert CLAIM_KEY in found
        assert (f"group {NAMESPACE}/train" in found) is told


def _job_of_group(made: CountingServer) -> object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    spec = {"template": {"spec": {**pod, "schedulingGroup": {"podGroupName": "train"}}}}
    return made.create(
        "jobs", {"metadata": {"name": "train", "namespace": NAMESPACE}, "spec": spec}
    )


async def test_a_workload_whose_group_is_missing_has_it_made_without_delay() -> None:
    async with following() as followed:
        found = await followed.after(_job_of_group)
        assert {each for each in found if "group" in each} == {f"new group {NAMESPACE}/train"}
    async with following(_group) as followed:
        found = await followed.after(_job_of_group)
        assert {each for each in found if "group" in each} == {f"group {NAMESPACE}/train"}


def _lists(*names: str) -> Callable[[CountingServer], object]:
    """Have the claim list these: the pods that exist, others with a UID made from the name."""

    def change(made: CountingServer) -> object:
        uids = {
            each["metadata"]["name"]: each["metadata"]["uid"]
            for each in made.admin.list("pods", NAMESPACE)
        }
        entries = [
            {"resource": "pods", "name": name, "uid": uids.get(name, f"uid-{name}")}
            for name in names
        ]
        return _claim_status(reservedFor=entries)(made)

    return change


@pytest.mark.parametrize("leads", [True, False])
async def test_a_pod_that_was_listed_for_one_version_and_never_shown_is_a_ghost(
    leads: bool,
) -> None:
    async with following(leads=leads) as followed:

        def change(made: CountingServer) -> None:
            _lists("train-1", "never-shown")(made)
            _lists("train-1")(made)

        await followed.after(change)
        assert followed.ghosts() == ["never-shown"]


async def test_a_list_that_is_there_at_the_start_is_looked_at_as_well() -> None:
    async with following(_lists("train-1", "never-shown")) as followed:
        assert followed.ghosts() == ["never-shown"]


async def test_a_listed_pod_that_the_cache_shows_is_no_ghost_readable_or_not() -> None:
    async with following(lambda made: made.create("pods", pod_body("late"))) as followed:
        await followed.after(_lists("train-1", "late"))
        followed.spoilt.spoil("pods", "odd")
        await followed.after(lambda made: made.create("pods", pod_body("odd")))
        await followed.after(_lists("train-1", "late", "odd"))
        assert followed.ghosts() == []


async def test_a_claim_is_looked_at_at_once_when_it_is_allocated() -> None:
    async with following(_claim_status(reservedFor=None, allocation=None)) as followed:
        await followed.after(_claim_status(allocation={"devices": {}}))
        assert followed.hurried == ["urgent"]
        label = {"metadata": {"labels": {"a": "b"}}}
        await followed.after(
            lambda made: made.admin.patch("resourceclaims", NAMESPACE, CLAIM, label)
        )
        assert followed.hurried == []


async def test_a_claim_is_looked_at_soon_when_a_pod_comes_that_a_scheduler_may_schedule() -> None:
    async with following() as followed:
        await followed.after(lambda made: made.create("pods", pod_body("waits")))
        assert followed.hurried == ["soon"]
        gated = pod_body("gated")
        gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        await followed.after(lambda made: made.create("pods", gated))
        assert followed.hurried == []


def _second_reservation(made: CountingServer) -> object:
    body = made.admin.get("claimreservations", NAMESPACE, "train-slice")
    meta = {"name": "other", "namespace": NAMESPACE}
    return made.create("claimreservations", {"metadata": meta, "spec": body["spec"]})


async def test_a_new_reservation_is_looked_at_at_once() -> None:
    async with following() as followed:
        await followed.after(_second_reservation)
        assert "urgent" in followed.hurried


async def test_a_workload_is_looked_at_when_a_reservation_comes_or_goes_not_when_it_changes() -> (
    None
):
    def annotated(made: CountingServer) -> None:
        meta = {"metadata": {"annotations": {RESERVE_ANNOTATION: "*"}}}
        made.admin.patch("deployments", NAMESPACE, "train", meta)

    def change(made: CountingServer) -> object:
        labels = {"metadata": {"labels": {"changed": "now"}}}
        return made.admin.patch("claimreservations", NAMESPACE, "other", labels)

    async with following(annotated) as followed:
        assert WORKLOAD_KEY in await followed.after(_second_reservation)
        assert WORKLOAD_KEY not in await followed.after(change)
        gone = await followed.after(
            lambda made: made.admin.delete("claimreservations", NAMESPACE, "other")
        )
        assert WORKLOAD_KEY in gone


async def test_the_last_write_of_this_process_brings_its_claim_back_to_nobody() -> None:
    def report(made: CountingServer) -> None:
        shown = made.admin.get("claimreservations", NAMESPACE, "train-slice")
        status = {**shown.get("status", {}), "dialect": "hold", "consumers": 7}
        made.admin.update("claimreservations", shown | {"status": status}, "status")

    async with following() as followed:
        assert CLAIM_KEY in await followed.after(report)

    async with following() as followed:

        def report_last(made: CountingServer) -> None:
            report(made)
            written = made.admin.get("claimreservations", NAMESPACE, "train-slice")["metadata"]
            meta = from_plain(written, ObjectMeta)
            followed.seen.own_writes.wrote(CLAIMRESERVATIONS, meta, last=True)

        assert CLAIM_KEY not in await followed.after(report_last)


@pytest.mark.parametrize("leads", [True, False])
async def test_an_eviction_is_noted_at_the_event_that_shows_it(leads: bool) -> None:
    """The pod may be gone before the next reconcile."""
    told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}

    def evict(made: CountingServer) -> object:
        status = {"status": {"conditions": [told]}}
        return made.admin.patch("pods", NAMESPACE, "train-1", status, "status")

    async with following(leads=leads) as followed:
        await followed.after(evict)
        held = from_plain(
            followed.server.admin.get("resourceclaims", NAMESPACE, CLAIM), ResourceClaim
        )
        assert followed.seen.claims.memory(held).evicting


LEADER_CLAIM, WORKER_CLAIM = "serve-1-0.lws.gpu.big", "serve-1-2.lws.gpu.big"


def _stateful_set(name: str, replicas: int = 2) -> Callable[[CountingServer], object]:
    pods: Any = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    pods["spec"]["containers"][0]["image"] = "image"
    spec = {"serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": pods}
    meta = {"name": name, "namespace": NAMESPACE}
    body = {"metadata": meta, "spec": spec | {"replicas": replicas}}
    return lambda made: made.create("statefulsets", body)


def _scale(name: str, replicas: int) -> Callable[[CountingServer], object]:
    def change(made: CountingServer) -> object:
        found = made.admin.get("statefulsets", NAMESPACE, name)
        found["spec"]["replicas"] = replicas
        return made.admin.update("statefulsets", found)

    return change


def _hold_back(name: str, partition: int) -> Callable[[CountingServer], object]:
    """Leave the pods below the partition alone in a rolling update."""

    def change(made: CountingServer) -> object:
        found = made.admin.get("statefulsets", NAMESPACE, name)
        found["spec"]["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": partition},
        }
        return made.admin.update("statefulsets", found)

    return change


def _sticky(made: CountingServer) -> None:
    """The claims of a leader and of a worker of a LeaderWorkerSet."""
    ref = {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "serve"}
    for name, member in ((LEADER_CLAIM, 0), (WORKER_CLAIM, 2)):
        spec = {
            "resourceClaimName": name,
            "resourceClaimTemplateName": "big",
            "workloadRef": ref,
            "sticky": {"ordinal": 1, "member": member},
        }
        meta = {"name": f"r{member}", "namespace": NAMESPACE}
        made.create("claimreservations", {"metadata": meta, "spec": spec})


async def test_the_claims_of_a_group_are_looked_at_when_what_makes_its_pods_changes() -> None:
    leader, worker = (f"claim {NAMESPACE}/{name}" for name in (LEADER_CLAIM, WORKER_CLAIM))
    async with following(_sticky) as on:
        assert leader in await on.after(_stateful_set("serve"))
        assert worker not in on.told
        assert await on.after(_scale("serve", 1)) >= {leader}
        assert await on.after(_hold_back("serve", 2)) == {leader}
        # its ordinal is below the partition, as before
        assert await on.after(_hold_back("serve", 3)) == set()
        assert await on.after(_stateful_set("serve-1")) == {worker}
        # the StatefulSet of the workers belongs to it, and may be known before it is
        assert worker in await on.after(lambda made: made.create("pods", pod_body("serve-1")))
        pod = _owned("serve-1-1", {**STATEFUL_SET, "name": "serve-1"})
        assert worker not in await on.after(lambda made: made.create("pods", pod))
        on.triggers.owner_known([("serve-1-1", NAMESPACE)])
        assert worker in on.told


def _owned(name: str, owner: dict[str, str], claim: str = "slice", note: str = "") -> Any:
    """A pod with a controller, and the annotation of the policy for sticky claims."""
    pod = pod_body(name, claim)
    pod["metadata"]["ownerReferences"] = [{"uid": "uid-owner", "controller": True, **owner}]
    pod["metadata"]["annotations"] = {STICKY_CLAIMS_ANNOTATION: note} if note else {}
    return pod


STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet"}


async def test_the_claim_of_an_ordinal_is_looked_at_when_its_new_pod_names_another() -> None:
    old, new = (f"serve-1.gang-x-io.gpu.{template}" for template in ("big", "other"))

    def reserve(made: CountingServer) -> None:
        spec = {
            "resourceClaimName": old,
            "workloadRef": {"apiGroup": "x.io", "kind": "Gang", "name": "serve"},
            "sticky": {"ordinal": 1},
        }
        meta = {"name": "r", "namespace": NAMESPACE}
        made.create("claimreservations", {"metadata": meta, "spec": spec})

    gang = {"apiVersion": "x.io/v1", "kind": "Gang", "name": "serve"}
    pod = _owned("any", gang, new, "gpu=other")
    async with following(reserve) as on:
        told = await on.after(lambda made: made.create("pods", pod))
        assert {f"claim {NAMESPACE}/{old}", f"claim {NAMESPACE}/{new}"} <= told
