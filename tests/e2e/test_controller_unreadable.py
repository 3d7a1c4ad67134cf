"""Unreadable objects: claimctl leaves alone what they concern, and goes on with the rest."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Preset
from structlog.testing import capture_logs

from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.get_work import ClaimsWanted, gather
from claimctl.commands.doctor.cluster_checks import findings
from claimctl.commands.doctor.examination import examine
from claimctl.kube.client import Client
from claimctl.kube.errors import UnreadableObject
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    RESOURCESLICES,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NATIVE, PODGROUP_136, Stage
from tests.e2e.unreliable_transport import UnreliableTransport
from tests.support.spoiling import Spoiling

pytestmark = pytest.mark.cluster(HOLD_136)

QUIET = 400.0
"""Longer than any wait of a release, graces included."""
UNREADABLE = "UnreadableObject"

options = pytest.mark.parametrize(
    "options",
    [NATIVE, HOLD_136, PODGROUP_136],
    ids=["native", "1.36", "podgroup"],
)


without_groups = pytest.mark.parametrize("options", [NATIVE, HOLD_136], ids=["native", "1.36"])
"""For what says nothing of a PodGroup: claimctl asks then for none."""


async def controlled(stage: Stage) -> Spoiling:
    """A controller to which the objects of one's choice are unreadable."""
    transport = Spoiling(stage.connect())
    await stage.started(transport=transport)
    return transport


async def held(stage: Stage, name: str = "train", claim: str = "slice", **spec: Any) -> None:
    """A Deployment of two pods that holds a claim made from a template."""
    body = manifests.deployment(name, 2, claim)
    shared = stage.site.dialect is Preset.POD_GROUPS
    await stage.create(DEPLOYMENTS, manifests.in_group(body, name) if shared else body)
    wanted = {"idleTimeoutSeconds": 1, "forceDeletedPodGraceSeconds": 30} | spec
    body = manifests.reservation(
        f"{name}-slice",
        workload=name,
        claim=claim,
        resourceClaimTemplateName="template",
        **wanted,
    )
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved", name=f"{name}-slice")


async def template(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())


async def idle(stage: Stage, name: str = "train") -> None:
    await stage.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}})


async def touch(stage: Stage, resource: Resource[Any], name: str) -> None:
    """Change an object, so that the watch delivers it."""
    seen = (await stage.client.get(resource, name, "team")).metadata.resource_version
    await stage.patch(resource, name, {"metadata": {"annotations": {"touched": seen}}})


def bare_pod(name: str, *claims: str) -> dict[str, Any]:
    used = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"containers": [{"name": "main", "image": "i"}], "resourceClaims": used},
    }


async def still(stage: Stage, claim: str, seconds: float = QUIET) -> None:
    """The claim stays allocated for a long time."""
    await stage.quiet(seconds)
    assert await stage.allocated(claim)


@pytest.mark.core
@pytest.mark.long
@options
@pytest.mark.parametrize("first", [True, False], ids=["from the start", "later"])
async def test_everything_else_is_reserved_and_released(stage: Stage, first: bool) -> None:
    """One object of every kind that is followed cannot be read, in list and watch."""
    await template(stage)
    transport = Spoiling(stage.connect())
    if not first:
        await stage.started(transport=transport)
    for plural in ("pods", "replicasets", "deployments", "resourceclaims", "claimreservations"):
        transport.spoil(plural, "bad")
    await stage.create(CLAIMRESERVATIONS, manifests.reservation("bad", claim="bad"))
    await stage.create(RESOURCECLAIMS, manifests.claim("bad"))
    await stage.create(DEPLOYMENTS, manifests.deployment("bad", 1, "bad"))
    if first:
        await stage.started(transport=transport)
    node = stage.site.nodes[1]
    transport.spoil("nodes", node)
    await touch(stage, NODES_ANYWHERE, node)
    await held(stage)
    await stage.until_running(3)
    await held(stage, "other", "piece")
    await idle(stage)
    await stage.until_released("slice")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_condition("Reserved", "True", "Reserved", name="train-slice")
    await stage.delete(DEPLOYMENTS, "other")
    await stage.until_released("piece", within=90)
    assert await stage.allocated("bad")


@pytest.mark.core
@pytest.mark.parametrize(
    ("options", "first", "levels"),
    [
        *((HOLD_136, first, levels) for first in (True, False) for levels in (1500, 10_000)),
        *((options, False, 10_000) for options in (NATIVE, PODGROUP_136)),
    ],
)
async def test_deep_objects_stop_nobody_else(stage: Stage, first: bool, levels: int) -> None:
    """One object of each kind is nested as deeply as an API server takes it."""
    await template(stage)
    transport = Spoiling(stage.connect())
    if not first:
        await stage.started(transport=transport)
    for resource in (PODS, REPLICASETS, DEPLOYMENTS, RESOURCECLAIMS, CLAIMRESERVATIONS):
        transport.deepen(resource.plural, "bad", levels)
    with capture_logs() as logs:
        await stage.create(CLAIMRESERVATIONS, manifests.reservation("bad", claim="bad"))
        await stage.create(RESOURCECLAIMS, manifests.claim("bad"))
        await stage.create(DEPLOYMENTS, manifests.deployment("bad", 1, "bad"))
        if first:
            await stage.started(transport=transport)
        began = stage.clock.monotonic()
        await held(stage)
        took = stage.clock.monotonic() - began
    # as long as without the deep objects; a group of pods is made first
    most = 6.1 if stage.site.dialect is Preset.POD_GROUPS else 1.1
    assert stage.cluster is None or took < most
    told = {line["object"]: line["problem"] for line in logs if "cannot be read" in line["event"]}
    assert set(told.values()) <= {"the JSON is nested too deeply"}
    # 1,500 levels are few for Python 3.13
    # on a real cluster the namespace has another name
    kinds = {name.split()[0] for name in told if name.endswith("/bad")}
    assert kinds >= {"ResourceClaim", "ClaimReservation", "Deployment"} or levels < 10_000
    await idle(stage)
    await stage.until_released("slice")
    await stage.delete(RESOURCECLAIMS, "bad")


async def test_commands_show_the_neighbours_of_a_deep_claim(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    await template(stage)
    transport = Spoiling(stage.connect())
    await stage.started(transport=transport)
    transport.deepen("resourceclaims", "bad", 10_000)
    await stage.create(RESOURCECLAIMS, manifests.claim("bad"))
    await held(stage)
    client = Client(transport, stage.clock)
    shown = await gather(client, stage.clock.now(), ClaimsWanted(""))
    assert [view.name for view in shown] == ["slice"]
    # on a real cluster the namespace has another name
    space = shown[0].namespace
    problem = f"ResourceClaim {space}/bad cannot be read: the JSON is nested too deeply"
    assert f"warning: {problem}" in capsys.readouterr().err
    told = await explain(client, space, "slice", stage.clock.now())
    assert told.view.name == "slice"
    with pytest.raises(UnreadableObject, match=problem):
        await explain(client, space, "bad", stage.clock.now())
    found = findings((await examine(client, stage.clock)).observed)
    (bad,) = [each for each in found if each.check == "unreadable-objects"]
    assert bad.message.startswith(problem)


NODES_ANYWHERE = Resource("", "v1", "nodes", "Node", ObjectHeader, namespaced=False)


@options
async def test_a_pod_that_cannot_be_read_blocks_the_claims_that_it_names(stage: Stage) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    await held(stage, "other", "piece")
    transport.spoil("pods", "bad")
    await stage.create(PODS, bare_pod("bad", "slice"))
    await idle(stage)
    await idle(stage, "other")
    await stage.until_released("piece")
    await stage.until_condition("Released", "False", UNREADABLE, name="train-slice")
    await still(stage, "slice")
    (told,) = [one for one in await stage.reservations() if one.metadata.name == "train-slice"]
    assert told.status.force_deleted_pods == ()
    transport.mend("pods", "bad")
    await touch(stage, PODS, "bad")
    await stage.until_condition("Released", "False", "Held", name="train-slice")
    await stage.delete(PODS, "bad")
    await stage.until_released("slice", within=90)


@without_groups
async def test_a_pod_whose_claims_cannot_be_read_blocks_every_claim_of_its_namespace(
    stage: Stage,
) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    transport.spoil("pods", "bad", "spec", "resourceClaims")
    await stage.create(PODS, bare_pod("bad"))
    await idle(stage)
    await stage.until_condition("Released", "False", UNREADABLE)
    await still(stage, "slice")
    await stage.delete(PODS, "bad")
    # nobody knows how it ended, and it may have used any claim
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    await stage.until_released("slice", within=90)


@without_groups
async def test_a_pod_that_goes_while_it_cannot_be_read_counts_as_one_that_vanished(
    stage: Stage,
) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    transport.spoil("pods", "train")
    for pod in await stage.running():
        await touch(stage, PODS, pod.metadata.name)
    await idle(stage)
    # longer than the grace: it begins when they go
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    await still(stage, "slice", 20)
    await stage.until_released("slice", within=60)


@options
@pytest.mark.parametrize("known", [True, False], ids=["known before", "from the start"])
async def test_a_claim_that_cannot_be_read_is_left_alone(stage: Stage, known: bool) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    before = await stage.references()
    transport.spoil("resourceclaims", "slice")
    if known:
        await touch(stage, RESOURCECLAIMS, "slice")
    else:
        await stage.stop()
        await stage.started("two", transport=transport)
    await stage.until_condition("Ready", "False", UNREADABLE)
    await stage.until_event(UNREADABLE)
    await idle(stage)
    await still(stage, "slice")
    assert set(before) & set(await stage.references())
    transport.mend("resourceclaims", "slice")
    await touch(stage, RESOURCECLAIMS, "slice")
    await stage.until_released("slice", within=90)
    await stage.until_condition("Ready", "True", "Ready")


@without_groups
async def test_the_claim_of_a_reservation_that_cannot_be_read_is_left_alone(stage: Stage) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    transport.spoil("claimreservations", "train")
    await touch(stage, CLAIMRESERVATIONS, "train-slice")
    await idle(stage)
    await still(stage, "slice")
    transport.mend("claimreservations", "train")
    await touch(stage, CLAIMRESERVATIONS, "train-slice")
    await stage.until_released("slice", within=90)


@without_groups
@pytest.mark.parametrize("resource", [DEPLOYMENTS, REPLICASETS], ids=["Deployment", "ReplicaSet"])
async def test_who_may_go_on_making_pods_keeps_the_claim(
    stage: Stage, resource: Resource[Any]
) -> None:
    await template(stage)
    transport = await controlled(stage)
    await held(stage)
    transport.spoil(resource.plural, "train")
    names = [each.metadata.name for each in (await stage.client.list(resource, "team")).items]
    for name in names:
        await touch(stage, resource, name)
    await idle(stage)
    await still(stage, "slice")
    blocked = "UnreadableObject"
    assert (await stage.condition("Released"))[1] in (blocked, "Held")
    transport.mend(resource.plural, "train")
    for name in names:
        await touch(stage, resource, name)
    await stage.until_released("slice", within=90)


async def test_a_hold_is_no_trap_while_the_way_to_its_devices_cannot_be_read(stage: Stage) -> None:
    """A node that cannot be read is not gone, and neither is a device."""
    await template(stage)
    transport = await controlled(stage)
    await held(stage, reallocateTimeoutSeconds=5)
    await stage.until_running(2)
    (node, *_) = {pod.spec.node_name for pod in await stage.running()}
    transport.spoil("nodes", node)
    await touch(stage, NODES_ANYWHERE, node)
    await stage.cordon(node)
    for pod in await stage.running():
        await stage.delete(PODS, pod.metadata.name)
    await still(stage, "slice")
    transport.mend("nodes", node)
    await touch(stage, NODES_ANYWHERE, node)

    async def moved() -> bool:
        return len([pod for pod in await stage.running() if pod.spec.node_name != node]) == 2

    # claimctl listed the new pods ahead: they may be bound for the binding time of 60 s
    await stage.until(moved, "the pods run elsewhere", within=120)


async def test_one_without_a_readable_name_holds_up_its_namespace_until_it_is_gone(
    stage: Stage,
) -> None:
    await template(stage)
    link = UnreliableTransport(stage.connect())
    transport = Spoiling(link)
    await stage.started(transport=transport)
    await held(stage)
    transport.spoil("pods", "bad", "metadata", "name")
    await stage.create(PODS, bare_pod("bad", "slice"))
    await idle(stage)
    await stage.until_condition("Released", "False", UNREADABLE)
    await still(stage, "slice", 100)
    await stage.delete(PODS, "bad")
    # the next stream begins with a list, and that is a gap
    if stage.cluster is None:
        # by itself a stream ends after some minutes
        link.forget()
        link.cut_off()
        link.cut = False
    await stage.until_released("slice", within=1200)


async def test_slices_that_cannot_be_read_change_nothing_for_who_runs(stage: Stage) -> None:
    await template(stage)
    transport = Spoiling(stage.connect())
    for plural in (RESOURCESLICES.plural, "downgradeplans"):
        transport.spoil(plural, "")
    await stage.started(transport=transport)
    await held(stage)
    await idle(stage)
    await stage.until_released("slice")


async def test_no_claim_is_made_of_a_template_that_cannot_be_read(stage: Stage) -> None:
    await template(stage)
    transport = await controlled(stage)
    transport.spoil(RESOURCECLAIMTEMPLATES.plural, "template")
    await stage.create(DEPLOYMENTS, manifests.deployment())
    body = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "False", "TemplateInvalid")
    transport.mend(RESOURCECLAIMTEMPLATES.plural, "template")
    await stage.until_condition("Reserved", "True", "Reserved", within=90)
