"""The controller uses every permission in rbac/ and needs no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.options import ClusterOptions

from claimctl.wire.base import to_plain
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    JOBS,
    PODGROUPS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    STATEFULSETS,
    WORKLOADKINDS,
)
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e import manifests
from tests.e2e.harness import (
    HOLD_134,
    HOLD_136,
    NATIVE,
    PODGROUP_136,
    Stage,
    embedded_stage,
)
from tests.e2e.kinds import GANGS, describe
from tests.e2e.rights import Permission, Register, as_account, grant, permissions, strict, watched

Story = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RightsCase:
    """A story, and the files of rbac/ that a controller needs for it."""

    story: Story
    options: ClusterOptions
    files: tuple[str, ...] = ("controller.yaml",)
    settings: tuple[str, ...] = ()
    overtaken: bool = False
    """Whether somebody else writes to the claim just before the controller does."""


@dataclass(slots=True)
class MeetsConflict:
    """The controller's first write of a claim's status meets a conflict."""

    stage: Stage
    inner: Transport
    done: bool = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method == "PATCH" and path.endswith("/resourceclaims/slice/status") and not self.done:
            self.done = True
            note = {"metadata": {"annotations": {"somebody": "else"}}}
            await self.stage.patch(RESOURCECLAIMS, "slice", note)
        return await self.inner.send(method, path, query, headers, body)


async def played(case: RightsCase, given: list[Permission]) -> Register:
    """A story with a controller that has no other permissions than these."""
    async with embedded_stage(strict(case.options)) as stage:
        register = watched(stage.embedded)
        stage.client.use_version(PODGROUPS.group, "v1alpha2")
        await grant(stage, given, *case.files)
        settings: dict[str, Any] = dict.fromkeys(case.settings, True)
        transport = await as_account(stage)
        if case.overtaken:
            transport = MeetsConflict(stage, transport)
        await stage.started(transport=transport, **settings)
        await case.story(stage)
        return register


async def templates(stage: Stage) -> None:
    """Claims made from templates, for each kind of workload, and given back."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment("train", replicas=2))
    body = manifests.reservation(resourceClaimTemplateName="template", idleTimeoutSeconds=1)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, "slice"), "the claim is gone")


async def described(stage: Stage) -> None:
    """A user describes a kind, which the cluster does not serve."""
    await describe(stage, GANGS, idle="self.spec.paused")

    async def told() -> bool:
        kind = await stage.client.get(WORKLOADKINDS, "gangs.acme.example")
        return any(each.reason == "RuleUnusable" for each in kind.status.conditions)

    await stage.until(told, "the status of the WorkloadKind says what is missing")


async def recreated(stage: Stage) -> None:
    """A workload made anew under its name gets a claim made anew."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment())
    body = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved")
    before = (await stage.claim()).metadata.uid
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=0))

    async def replaced() -> bool:
        return (await stage.claim()).metadata.uid != before

    await stage.until(replaced, "the claim is made anew", within=120)


async def annotated(stage: Stage) -> None:
    """Annotated workloads of each kind, which end; one loses its annotation."""
    for kind, made in (
        (DEPLOYMENTS, manifests.deployment("dep", claim="dep", reserve="*")),
        (STATEFULSETS, manifests.stateful_set("sts", claim="sts", reserve="*")),
        (JOBS, manifests.job("job", claim="job", seconds=300, reserve="*")),
    ):
        name = made["metadata"]["name"]
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
        await stage.create(kind, made)
        await until_held(stage, name)
        await stage.delete(kind, name)
        await stage.until_released(name, within=400)
    await stage.create(RESOURCECLAIMS, manifests.claim("free"))
    await stage.create(DEPLOYMENTS, manifests.deployment("free", claim="free", reserve="*"))
    await until_held(stage, "free")
    nothing = {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
    await stage.patch(DEPLOYMENTS, "free", nothing)
    await stage.until(lambda: unreserved(stage), "the reservations are gone")


async def until_shared(stage: Stage, claim: str) -> None:
    async def holds() -> bool:
        kinds = sorted(each.partition("/")[0] for each in await stage.references(claim))
        return len(kinds) == 2 and "podgroups" in kinds

    await stage.until(holds, f"{claim} is shared by a group")


async def until_held(stage: Stage, claim: str) -> None:
    async def holds() -> bool:
        listed = await stage.references(claim)
        return any(not each.startswith("pods/") for each in listed)

    await stage.until(holds, f"{claim} is held")


async def unreserved(stage: Stage) -> bool:
    return not await stage.reservations()


async def vanishing(stage: Stage) -> None:
    """A pod is deleted by force: claimctl asks the server whether it is gone."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2, reserve="*"))
    await until_held(stage, "slice")
    await stage.until_running(2)
    (pod, *_) = await stage.running()
    await stage.site.force_delete(pod.metadata.name)
    await stage.clock.sleep(30)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.clock.sleep(60)


async def held(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await until_held(stage, "slice")


async def repeated(stage: Stage) -> None:
    """An event that repeats within minutes becomes a series."""
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="No Name!"))
    for replicas in (2, 3, 4):
        await stage.clock.sleep(20)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})
    await stage.clock.sleep(60)


async def grouped(stage: Stage) -> None:
    """Pods that share through a PodGroup, made and guarded for them, until they have ended."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=3, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_listed("podgroups/train", "deployments/train")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await stage.until(lambda: stage.gone(PODGROUPS, "train"), "the group is gone")


async def grouped_job(stage: Stage) -> None:
    """A Job that has ended and stays; and the reference of a former group of that name."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=2, seconds=30, reserve="*")
    await stage.create(JOBS, manifests.in_group(body))
    await stage.until_listed("podgroups/train", "jobs/train")
    await stage.site.pause("resourceclaim-controller")
    old = {"apiGroup": PODGROUPS.group, "resource": "podgroups", "name": "train", "uid": "old"}
    claim = await stage.claim()
    listed = [*map(to_plain, claim.status.reserved_for), old]
    await stage.client.merge_patch(
        RESOURCECLAIMS, claim.metadata, {"status": {"reservedFor": listed}}, subresource="status"
    )
    await stage.until_listed("podgroups/train", "jobs/train")
    await stage.site.resume("resourceclaim-controller")
    await stage.until_released()
    await stage.until(lambda: stage.gone(PODGROUPS, "train"), "the group is gone")


async def injected(stage: Stage) -> None:
    """Templates that ask for their group, of both kinds that can be changed."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    deployment = manifests.deployment(replicas=2, reserve="*", pod_group="inject")
    await stage.create(DEPLOYMENTS, deployment)
    await until_shared(stage, "slice")
    await stage.create(RESOURCECLAIMS, manifests.claim("sts"))
    stateful_set = manifests.stateful_set(
        "sts", replicas=2, claim="sts", reserve="*", pod_group="inject"
    )
    await stage.create(STATEFULSETS, stateful_set)
    await until_shared(stage, "sts")


async def downgrade(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2, reserve="*"))
    await until_held(stage, "slice")
    await stage.create(DOWNGRADEPLANS, {"metadata": {"name": DOWNGRADE_PLAN_NAME}})

    async def prepared() -> bool:
        plan = await stage.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)
        return plan.status.phase == "Prepared"

    await stage.until(prepared, "the downgrade is prepared")


WITH_TEMPLATES = ("controller.yaml", "templates.yaml")
WITH_INJECTION = ("controller.yaml", "template-injection.yaml")
CASES = [
    RightsCase(templates, NATIVE, WITH_TEMPLATES),
    RightsCase(recreated, NATIVE, WITH_TEMPLATES),
    RightsCase(templates, HOLD_136, WITH_TEMPLATES),
    RightsCase(annotated, HOLD_136),
    RightsCase(described, HOLD_136),
    RightsCase(vanishing, HOLD_134),
    RightsCase(vanishing, HOLD_136),
    RightsCase(held, HOLD_136, overtaken=True),
    RightsCase(repeated, HOLD_136),
    RightsCase(downgrade, HOLD_136),
    RightsCase(grouped, PODGROUP_136),
    RightsCase(grouped_job, PODGROUP_136),
    RightsCase(injected, PODGROUP_136, WITH_INJECTION, ("allow_template_injection",)),
]


SPARE = (
    "claimctl-controller: get leases.coordination.k8s.io ['claimctl-controller'] in claimctl-system"
)
"""The ClusterRole reads the Leases of nodes, so this one, too. A controller of a single namespace
has no such right in its own namespace."""


async def test_every_permission_is_used_and_no_other_is_asked_for() -> None:
    unused = dict.fromkeys(permissions(*WITH_TEMPLATES, "template-injection.yaml"))
    for case in CASES:
        given = permissions(*case.files)
        register = await played(case, given)
        assert list(register.refused) == []
        for each in [each for each in unused if needed(each, given, register)]:
            del unused[each]
    assert "\n".join(map(str, unused)) == SPARE


def needed(permission: Permission, given: list[Permission], register: Register) -> bool:
    """Whether something was allowed by this permission and by no other."""
    return any(
        [each for each in given if each.allows(request)] == [permission]
        for request in register.used
    )
