"""``claimctl doctor driver``: what it tries, that it leaves nothing, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.progress import Progress
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine as examine_cluster
from claimctl.commands.drivers.leftovers import remove_leftovers
from claimctl.commands.drivers.signs import StepResult as Result
from claimctl.commands.drivers.verdict import CheckStep as Step
from claimctl.commands.drivers.verdict import (
    habits_of,
    tasks_of,
)
from claimctl.commands.drivers.work import CheckWanted, examine
from claimctl.kube.discovery import use_served_versions
from claimctl.kube.errors import Forbidden, KubeError
from claimctl.wire.resources import JOBS, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e.driver_checks import IMAGE, checked, checked_node, left, until_nothing_is_left
from tests.e2e.dying_transport import WRITES, DyingTransport, matters
from tests.e2e.harness import HOLD_136, NAMESPACE, NewStage, Stage, embedded_stage
from tests.e2e.office import binding
from tests.e2e.orphans import connection
from tests.e2e.rights import RESOURCES, grant, permissions, strict

pytestmark = pytest.mark.cluster(HOLD_136)


@pytest.mark.parametrize("version", [(1, 32), (1, 34), (1, 38)])
async def test_a_driver_without_habits_passes_on_all_its_nodes(version: tuple[int, int]) -> None:
    options = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=version)
    async with embedded_stage(options) as stage:
        await use_served_versions(stage.client)
        run = await checked(stage)
        assert sorted(run.nodes) == sorted(stage.site.nodes)
        for seen in run.nodes.values():
            results = {step: seen.result(step) for step in Step}
            assert results == {
                step: Result.NOT_TRIED if step is Step.HOLD_LAST else Result.DONE for step in Step
            }
            assert (habits_of(seen), tasks_of(seen, "gpu.example.com")) == ((), ())
        await until_nothing_is_left(stage)


async def test_the_claim_is_prepared_twice_under_one_uid_on_one_device(stage: Stage) -> None:
    await checked_node(stage)
    calls = stage.embedded.driver(stage.site.fleet.driver).calls
    assert [call.verb for call in calls] == ["prepare", "unprepare"] * 4
    assert len({call.uid for call in calls}) == 1


async def test_a_node_that_is_not_ready_is_left_alone(stage: Stage) -> None:
    first = stage.site.nodes[0]
    conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    stage.embedded.admin.patch(
        "nodes", "", first, {"status": {"conditions": conditions}}, subresource="status"
    )
    run = await checked(stage)
    assert run.nodes[first].skipped == "the node is not ready"
    assert not run.nodes[first].complete
    assert all(seen.complete for name, seen in run.nodes.items() if name != first)


async def test_a_driver_whose_devices_are_all_in_use_is_not_blamed(stage: Stage) -> None:
    for node in stage.site.nodes:
        await stage.site.driver.publish(node, ["dev-0"])
    for number in range(len(stage.site.nodes)):
        body = {"devices": {"requests": [_request(stage)]}}
        meta = {"name": f"other-{number}", "namespace": NAMESPACE}
        await stage.create(RESOURCECLAIMS, {"metadata": meta, "spec": body})
        await stage.create(PODS, _pod(f"other-{number}"))
    await stage.clock.sleep(10)
    seen = await checked_node(stage)
    assert (seen.result(Step.PREPARE), habits_of(seen)) == (Result.NOT_SCHEDULED, ())


def _request(stage: Stage) -> dict[str, object]:
    return {"name": "gpu", "exactly": {"deviceClassName": stage.site.fleet.driver}}


def _pod(claim: str) -> dict[str, object]:
    container = {"name": "main", "image": "x"}
    claims = [{"name": "c", "resourceClaimName": claim}]
    spec = {"containers": [container], "resourceClaims": claims}
    return {"metadata": {"name": claim, "namespace": NAMESPACE}, "spec": spec}


# -- killed and interrupted


async def test_killed_at_any_write_the_next_check_removes_what_it_has_left(
    stage: Stage,
) -> None:
    """Also with the longest script: a driver that wants one pod."""
    await stage.site.driver.take_up("wants-one-pod")
    killed = 0
    while True:
        killed += 1
        transport = DyingTransport(connection(stage), killed)
        transport.arm()
        with suppress(KubeError):
            await checked(stage, transport, node=stage.site.nodes[0])
        if not transport.dead.is_set():
            break
        await remove_leftovers(stage.client, NAMESPACE, lambda _: None)
        await until_nothing_is_left(stage)
    assert killed > 20


class Interrupting:
    """Cancels a task at the n-th write, as Ctrl-C does."""

    def __init__(self, inner: Transport, at: int, stop: Callable[[], object]) -> None:
        self._inner, self._left, self._stop = inner, at, stop
        self.hit = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method in WRITES and matters(path):
            self._left -= 1
            if self._left == 0:
                self.hit = True
                self._stop()
                await asyncio.sleep(0)  # as over a network: here a cancelled run stops
        return await self._inner.send(method, path, query, headers, body)


async def interrupted(stage: Stage, number: int) -> bool:
    """Interrupt a check at this write; whether it made so many."""
    transport = Interrupting(connection(stage), number, lambda: task.cancel())
    task = asyncio.create_task(checked(stage, transport, node=stage.site.nodes[0]))
    with suppress(asyncio.CancelledError):
        await task
    return transport.hit


async def test_interrupted_at_any_write_it_removes_everything_itself(stage: Stage) -> None:
    number = 1
    while await interrupted(stage, number):
        await until_nothing_is_left(stage)
        number += 1
    assert number > 15


async def killed_with_its_hold(stage: Stage) -> None:
    """A check is killed while its hold is in the list, and Kubernetes removes its Job."""
    transport = DyingTransport(connection(stage), 10**9)
    task = asyncio.create_task(checked(stage, transport, node=stage.site.nodes[0]))

    async def holds() -> bool:
        claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
        return any(entry.resource == "jobs" for it in claims for entry in it.status.reserved_for)

    await stage.until(holds, "the check has a hold in the list")
    transport.dead.set()
    with suppress(KubeError):
        await task
    (job,) = (await stage.client.list(JOBS, NAMESPACE)).items
    await stage.client.delete(JOBS, job.metadata.name, NAMESPACE)


async def test_doctor_finds_a_claim_that_a_killed_check_has_left(stage: Stage) -> None:
    await killed_with_its_hold(stage)
    await stage.clock.sleep(30)
    assert len(await left(stage)) == 1
    found = diagnosis(await examine_cluster(stage.client, stage.clock))
    said = [each for each in found if each.object.startswith("claimctl-check-")]
    assert [each.check for each in said] == ["driver-checks"]
    assert "`claimctl doctor driver`" in said[0].message
    await remove_leftovers(stage.client, NAMESPACE, lambda _: None)
    await until_nothing_is_left(stage)


# -- what is refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"driver": "none.example.com"}, "no ResourceSlice is of this driver; these have: "),
        ({"node": "nowhere"}, "--node: gpu.example.com has no device on node nowhere"),
        ({"device_class": "none"}, "--class: there is no DeviceClass none"),
    ],
)
async def test_what_is_not_there_is_bad_input(
    stage: Stage, change: dict[str, str], words: str
) -> None:
    names = {"driver": stage.site.fleet.driver, "node": "", "device_class": "", **change}
    wanted = CheckWanted(**names, image=IMAGE, seconds=30.0)
    with pytest.raises(UsageError, match=words):
        await examine(stage.client, NAMESPACE, wanted, Progress(stage.clock.monotonic))
    assert await left(stage) == []


class Refusing:
    """Refuses the pods, as a quota or a PodSecurity level does."""

    def __init__(self, inner: Transport, words: str) -> None:
        self._inner, self._words = inner, words

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method == "POST" and path.endswith("/pods"):
            raise Forbidden(method, path, status=403, reason="Forbidden", message=self._words)
        return await self._inner.send(method, path, query, headers, body)


async def test_a_namespace_that_refuses_the_pods_is_told_and_left_clean(stage: Stage) -> None:
    words = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1'
    with pytest.raises(Forbidden) as refused:
        await checked(stage, Refusing(connection(stage), words))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert await left(stage) == []


async def test_the_role_is_enough_and_without_it_every_missing_right_is_named(
    new_stage: NewStage,
) -> None:
    async with embedded_stage(strict(HOLD_136)) as stage:
        await grant(stage, permissions("users.yaml"), "users.yaml")
        bound = binding("claimctl-driver-check", "checker")
        await stage.client.create(RESOURCES["ClusterRoleBinding"], bound)
        run = await checked(stage, stage.embedded.transport("checker", ()))
        assert all(seen.complete for seen in run.nodes.values())
        assert await left(stage) == []
        bound = binding("claimctl-doctor", "reader")
        await stage.client.create(RESOURCES["ClusterRoleBinding"], bound)
        with pytest.raises(CommandFailed) as refused:
            await checked(stage, stage.embedded.transport("reader", ()))
        assert "you may not create jobs.batch" in str(refused.value)
        assert "create pods" in str(refused.value)
        assert "claimctl-driver-check" in str(refused.value)
