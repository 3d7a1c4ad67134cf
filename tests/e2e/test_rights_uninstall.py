"""``claimctl uninstall prepare`` uses each right of its role and needs no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from claimctl.commands.uninstall.stopping import CRONJOBS, RESCHEDULER
from claimctl.wire.resources import JOBS, PODS, RESOURCECLAIMS, STATEFULSETS
from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.shapes.records import (
    RecordedAvoidance,
    RecordedTaint,
    RescheduleRecordStatus,
)
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.node_taints import set_taints, taints
from tests.e2e.office import office
from tests.e2e.rights import grant, permissions, watched
from tests.e2e.site import CONTROLLER_NAMESPACE
from tests.e2e.sticky import asking, install_policy, make_templates

pytestmark = pytest.mark.real_time(120)
ROLE = "claimctl-uninstall"
OURS = {"key": "claimctl.io/moving", "value": "claimctl-p-1", "effect": "NoSchedule"}
TEMPLATE = {
    "metadata": {"annotations": {"kube-in-process/run-seconds": "3600"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "claimctl"}]},
}


async def _reserved_of_each_kind(stage: Stage) -> None:
    for kind, made in (
        (STATEFULSETS, manifests.stateful_set("sts", claim="sts", reserve="*")),
        (JOBS, manifests.job("job", claim="job", seconds=300, reserve="*")),
    ):
        await stage.create(RESOURCECLAIMS, manifests.claim(made["metadata"]["name"]))
        await stage.create(kind, made)


async def _rescheduling(stage: Stage) -> None:
    """What ``claimctl reschedule`` leaves: a Job, a taint, a gate, and its record."""
    job: dict[str, Any] = {"spec": {"template": TEMPLATE}}
    cron_job = {
        "metadata": {"name": RESCHEDULER},
        "spec": {"schedule": "@daily", "jobTemplate": job},
    }
    made = await stage.client.create(CRONJOBS, cron_job, CONTROLLER_NAMESPACE)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": RESCHEDULER,
        "uid": made.metadata.uid,
    }
    meta = {"name": "run", "ownerReferences": [owner]}
    await stage.client.create(JOBS, {"metadata": meta, **job}, CONTROLLER_NAMESPACE)
    entry = RecordedTaint(node="node-0", key=OURS["key"], value=OURS["value"])
    avoidance = RecordedAvoidance(owner_uid="o-1", nodes=("node-1",))
    await Records(stage.client).change(
        lambda _: RescheduleRecordStatus(taints=(entry,), avoidances=(avoidance,))
    )
    body = {
        "metadata": {"name": "braked"},
        "spec": {
            "containers": [{"name": "main", "image": "web"}],
            "schedulingGates": [{"name": BRAKE_GATE}],
        },
    }
    await stage.client.create(PODS, body, NAMESPACE)
    await set_taints(stage, "node-0", OURS)


async def _sticky(stage: Stage) -> None:
    """A sticky claim with a pod, and one whose ordinal is scaled away."""
    await grant(stage, permissions("templates.yaml"), "templates.yaml")
    await install_policy(stage)
    await make_templates(stage, "big")
    body = asking(manifests.stateful_set("sticky", replicas=2), "*", ("gpu", "big"))
    body["spec"]["podManagementPolicy"] = "Parallel"
    await stage.create(STATEFULSETS, body)

    async def held() -> bool:
        names = (f"sticky-{ordinal}.sts.gpu.big" for ordinal in range(2))
        return all([bool(await stage.references(name)) for name in names])

    await stage.until(held, "the sticky claims are held")
    await stage.patch(STATEFULSETS, "sticky", {"spec": {"replicas": 1}})

    async def scaled() -> bool:
        return await stage.client.find(PODS, "sticky-1", NAMESPACE) is None

    await stage.until(scaled, "the pod is gone")


async def test_every_right_is_used_and_no_other_is_asked_for(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        await _reserved_of_each_kind(made.stage)
        await _rescheduling(made.stage)
        await _sticky(made.stage)
        register = watched(made.stage.embedded, "remover")
        done = await made.ask("remover", "uninstall", "prepare", "--stop-controller", "-o", "json")
        assert (done.code, done.document["left"]) == (0, []), done
        assert "claimctl reschedule is stopped" in done.err
        assert await taints(made.stage) == []
        record = await Records(made.stage.client).read()
        assert record is not None
        assert (record.status.taints, record.status.avoidances) == ((), ())
        pod = await made.stage.client.get(PODS, "braked", NAMESPACE)
        assert pod.spec.scheduling_gates == ()
        (job,) = (await made.stage.client.list(JOBS, CONTROLLER_NAMESPACE)).items
        assert job.spec.suspend
        named = await made.ask("remover", "uninstall", "verify", "-n", NAMESPACE)
        assert named.code == 0, named
        assert list(register.refused) == []
        given = [each for each in permissions("users.yaml") if each.role == ROLE]
        unused = [each for each in given if not any(map(each.allows, register.used))]
        assert "\n".join(map(str, unused)) == ""
