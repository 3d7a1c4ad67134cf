"""When a pod template gets a PodGroup, and what is reported if it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault
from msgspec.structs import replace

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.template_injection import Injector, group_name
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Forbidden, Invalid
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import MAX_NAME
from claimctl.wire.coordination import ObjectReference
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.resources import DEPLOYMENTS, JOBS
from claimctl.wire.workloads import Workload
from tests.support.builders import CLAIM, NAMESPACE, NOW, after
from tests.support.counting_server import CountingServer, server
from tests.unit.controller.cluster import filled, furnish, knowledge

KEY = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
GROUP = group_name(KEY, (CLAIM,))
ASKS = {POD_GROUP_ANNOTATION: "inject"}


class Reports(EventRecorder):
    """Keeps the reasons instead of writing Events."""

    def __init__(self, made: CountingServer) -> None:
        super().__init__(made.client, LoopClock(NOW), "test", "test")
        self.reasons: list[str] = []

    def record(
        self,
        regarding: ObjectReference,
        *,
        type: str,
        reason: str,
        note: str,
        action: str,
        related: ObjectReference | None = None,
    ) -> None:
        self.reasons.append(str(reason))


@dataclass
class Injecting:
    made: CountingServer
    caches: Caches
    injector: Injector
    reports: Reports
    answers: list[bool] = field(default_factory=list)

    @classmethod
    async def of(
        cls,
        annotations: Mapping[str, str] = ASKS,
        *,
        dialect: str = "podgroup",
        allowed: bool = True,
        **change: Any,
    ) -> Injecting:
        """A reserved Deployment with these annotations; ``change`` is a further merge patch."""
        made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
        furnish(made)
        patch = {"metadata": {"annotations": dict(annotations)}, **change}
        made.admin.patch("deployments", NAMESPACE, "train", patch)
        caches, reports = await filled(made), Reports(made)
        known = knowledge(made, caches, dialect)
        return cls(made, caches, Injector(made.client, known, reports, allowed=allowed), reports)

    async def inject(self, workload: Workload | None = None, key: WorkloadKey = KEY) -> bool:
        found = workload or await self.read()
        return await self.injector.inject(key, found)

    async def read(self) -> Workload:
        return await self.made.client.get(DEPLOYMENTS, "train", NAMESPACE)

    def group(self) -> str:
        """The PodGroup that the template names, or ''."""
        found = self.made.admin.get("deployments", NAMESPACE, "train")
        group = found["spec"]["template"]["spec"].get("schedulingGroup") or {}
        return str(group.get("podGroupName", ""))


async def test_a_template_gets_the_group_of_its_reserved_claims() -> None:
    on = await Injecting.of()
    assert await on.inject()
    assert on.group() == GROUP
    assert on.reports.reasons == []


NAMES_A_GROUP = {"template": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}}
NAMES_NO_CLAIM = {"template": {"spec": {"resourceClaims": None}}}


@pytest.mark.parametrize(
    ("facts", "group", "reasons"),
    [
        pytest.param({"annotations": {}}, "", [], id="it does not ask"),
        pytest.param({"dialect": "hold"}, "", [], id="the cluster has no PodGroups"),
        pytest.param({"spec": NAMES_A_GROUP}, "mine", [], id="it has a group of its own"),
        pytest.param({"spec": NAMES_NO_CLAIM}, "", [], id="its pods use no reserved claim"),
        pytest.param(
            {"annotations": {POD_GROUP_ANNOTATION: "yes"}},
            "",
            ["InvalidAnnotation"],
            id="an unknown value",
        ),
        pytest.param(
            {"allowed": False}, "", ["TemplateInjectionNotAllowed"], id="the flag is not set"
        ),
    ],
)
async def test_a_template_is_left_alone(
    facts: dict[str, Any], group: str, reasons: list[str]
) -> None:
    on = await Injecting.of(**facts)
    assert await on.inject()
    assert (on.group(), on.reports.reasons) == (group, reasons)


async def test_a_workload_that_is_being_deleted_is_left_alone() -> None:
    on = await Injecting.of()
    found = await on.read()
    going = replace(found, metadata=replace(found.metadata, deletion_timestamp=after(1)))
    assert await on.inject(going)
    assert on.group() == ""


async def test_a_reservation_that_is_being_deleted_asks_for_nothing() -> None:
    on = await Injecting.of()
    on.made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    on.caches = await filled(on.made)
    known = knowledge(on.made, on.caches, "podgroup")
    assert await Injector(on.made.client, known, on.reports, allowed=True).inject(
        KEY, await on.read()
    )
    assert on.group() == ""


async def test_the_template_of_a_job_cannot_be_changed() -> None:
    on = await Injecting.of()
    template = on.made.admin.get("deployments", NAMESPACE, "train")["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    meta = {"name": "train", "namespace": NAMESPACE, "annotations": ASKS}
    on.made.create("jobs", {"metadata": meta, "spec": {"template": {"spec": template["spec"]}}})
    job = {"apiGroup": "batch", "kind": "Job", "name": "train"}
    body = {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "metadata": {"name": "of-job", "namespace": NAMESPACE},
        "spec": {"resourceClaimName": CLAIM, "workloadRef": job},
    }
    on.made.create("claimreservations", body)
    known = knowledge(on.made, await filled(on.made), "podgroup")
    injector = Injector(on.made.client, known, on.reports, allowed=True)
    found = await on.made.client.get(JOBS, "train", NAMESPACE)
    assert await injector.inject(WorkloadKey("batch", "Job", NAMESPACE, "train"), found)
    assert on.reports.reasons == ["PodTemplateImmutable"]


async def test_a_workload_that_another_client_wrote_first_is_tried_again() -> None:
    on = await Injecting.of()
    old = await on.read()
    label = {"metadata": {"labels": {"seen": "yes"}}}
    on.made.admin.patch("deployments", NAMESPACE, "train", label)
    assert not await on.inject(old)
    assert on.group() == ""
    assert await on.inject()
    assert on.group() == GROUP


async def test_a_workload_that_is_gone_needs_no_second_try() -> None:
    on = await Injecting.of()
    old = await on.read()
    on.made.admin.delete("deployments", NAMESPACE, "train")
    assert await on.inject(old)
    assert on.reports.reasons == []


async def test_a_template_is_changed_once_whatever_becomes_of_it() -> None:
    """Each change rolls the pods: claimctl does not fight with another client."""
    on = await Injecting.of()
    await on.inject()
    undo = {"spec": {"template": {"spec": {"schedulingGroup": None}}}}
    on.made.admin.patch("deployments", NAMESPACE, "train", undo)
    assert await on.inject()
    assert on.group() == ""


@pytest.mark.parametrize(
    ("status", "reason", "error"), [(403, "Forbidden", Forbidden), (422, "Invalid", Invalid)]
)
async def test_a_write_that_is_refused_is_reported_and_raised(
    status: int, reason: str, error: type[Exception]
) -> None:
    on = await Injecting.of()
    fault = Fault(status=status, reason=reason, message="no")
    on.made.handler.fault = lambda point: fault if point.verb == "patch" else None
    with pytest.raises(error):
        await on.inject()
    assert on.reports.reasons == ["TemplateInjectionNotAllowed"]
    on.made.handler.fault = None
    assert await on.inject()
    assert on.group() == GROUP


async def test_a_server_that_drops_the_field_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    on = await Injecting.of()
    found = await on.read()

    async def unchanged(*_: object, **__: object) -> Workload:
        return found

    monkeypatch.setattr(on.made.client, "merge_patch", unchanged)
    assert await on.inject(found)
    assert on.reports.reasons == ["PodTemplateWithoutSchedulingGroup"]


def test_each_set_of_claims_has_a_name_of_its_own() -> None:
    other = WorkloadKey("apps", "StatefulSet", NAMESPACE, "train")
    names = {
        group_name(KEY, ("a",)),
        group_name(KEY, ("b",)),
        group_name(KEY, ("a", "b")),
        group_name(other, ("a",)),
    }
    assert len(names) == 4
    assert all(name.startswith("train-") for name in names)
    assert group_name(KEY, ("a",)) == group_name(KEY, ("a",))


def test_a_long_name_is_cut_where_a_name_may_end() -> None:
    long = "x" * (MAX_NAME - 13) + "-.yyyyyyyyyyyy"
    name = group_name(WorkloadKey("apps", "Deployment", NAMESPACE, long), ("a",))
    assert len(name) <= MAX_NAME
    assert "-." not in name
