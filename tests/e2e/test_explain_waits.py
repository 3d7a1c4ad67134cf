"""What explain, get and doctor say while a release waits, and of claims that ask in vain."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.explanation import explain_with_controller
from claimctl.commands.claims.get_work import ClaimsWanted, gather, in_order
from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine
from claimctl.wire.pods import Pod
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.support.explained import claim_lines, pod_lines, workload_lines

pytestmark = pytest.mark.cluster(HOLD_136)

GRACE = 600


def pod(name: str, claim: str) -> dict[str, object]:
    spec = {
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


async def doctor(stage: Stage, check: str) -> list[tuple[str, str]]:
    """Verdict and message of each line of a check in the scenario's namespace."""
    found = diagnosis(await examine(stage.client, stage.clock, namespace=NAMESPACE))
    return [(each.verdict, each.message) for each in found if each.check == check]


async def blocked(stage: Stage) -> Pod:
    """The release of claim slice waits for a vanished pod, and another controller runs since."""
    await stage.started()
    grace = int(stage.scaled(GRACE))
    for name in ("slice", "other"):
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
    made = manifests.reservation(idleTimeoutSeconds=3600, forceDeletedPodGraceSeconds=grace)
    await stage.create(CLAIMRESERVATIONS, made)
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    (victim,) = await stage.running()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(victim.metadata.name)
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    await stage.stop("one")
    await stage.clock.sleep(stage.scaled(GRACE * 0.67))
    await stage.started("two")
    return victim


async def test_a_release_that_waits_has_the_time_of_the_controller_that_runs_now(
    stage: Stage,
) -> None:
    victim = await blocked(stage)
    began = stage.clock.now()
    # the first controller would have ended it by then
    await stage.clock.sleep(stage.scaled(GRACE * 0.36))
    shown = await explain_with_controller(stage.client, NAMESPACE, "slice", stage.clock)
    lines = claim_lines(shown)
    assert not any("degraded" in line or "Nothing is wrong" in line for line in lines)
    (waits,) = [line for line in lines if line.strip().startswith("ForceDeletedPods: pod ")]
    assert "it began to lead at" in waits
    (blocker,) = shown.obstacles
    assert blocker.after is not None
    end = stage.clock.now() + timedelta(seconds=blocker.after)
    assert abs((end - began).total_seconds() - stage.scaled(GRACE)) < 10
    assert any(is_off(victim) in line for line in advice(shown))

    # get has the state of the metric, and sorts by it
    views = await gather(stage.client, stage.clock.now(), ClaimsWanted(NAMESPACE))
    assert [(it.name, it.state) for it in in_order(views, "state")] == [
        ("other", "Pending"),
        ("slice", "Releasing"),
    ]
    ((verdict, message),) = await doctor(stage, "releases")
    assert verdict == "waits"
    assert f"pod {victim.metadata.name} vanished while running" in message


def is_off(victim: Pod) -> str:
    place, node = victim.metadata.namespace, victim.spec.node_name
    return f"claimctl release slice -n {place} --node-is-off {node}"


async def test_who_waits_for_a_release_is_told_for_what_it_waits_and_until_when(
    stage: Stage,
) -> None:
    victim = await blocked(stage)
    await stage.cordon(victim.spec.node_name)
    await stage.create(PODS, pod("next", "slice"))
    await stage.clock.sleep(5)
    of_pod = await explain_pod(stage.client, NAMESPACE, "next", stage.clock)
    workload = await explain_workload(stage.client, NAMESPACE, "Deployment", "train", stage.clock)
    for lines in (pod_lines(of_pod), workload_lines(workload)):
        text = "\n".join(lines)
        assert f"pod {victim.metadata.name} vanished while running" in text
        assert "by the controller's clock" in text
        assert is_off(victim) in text
        assert "look again" not in text
    await stage.delete(PODS, "next")
    await stage.until_released(within=GRACE + 60)


@pytest.mark.parametrize(
    ("request_", "reason", "words"),
    [
        ({"count": 20}, "TooManyDevices", "no node has more than "),
        ({"deviceClassName": "nosuch"}, "NoDeviceClass", "DeviceClass nosuch does not exist"),
    ],
)
async def test_a_claim_that_asks_in_vain_takes_devices_from_nobody(
    stage: Stage, request_: dict[str, object], reason: str, words: str
) -> None:
    await stage.started()
    body = manifests.claim()
    body["spec"]["devices"]["requests"][0]["exactly"] |= request_
    await stage.create(RESOURCECLAIMS, manifests.claim("busy"))
    await stage.create(PODS, pod("user", "busy"))
    await stage.create(RESOURCECLAIMS, body)
    await stage.create(CLAIMRESERVATIONS, manifests.reservation())
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.quiet(15)
    pods = (await stage.client.list(PODS, NAMESPACE)).items
    (late,) = [it.metadata.name for it in pods if not it.spec.node_name]
    found = await explain_pod(stage.client, NAMESPACE, late, stage.clock)
    assert found.reasons()[0][0] == reason
    assert words in found.reasons()[0][1]
    assert not any("claimctl explain busy" in line for line in pod_advice(found))
    views = await gather(stage.client, stage.clock.now(), ClaimsWanted(NAMESPACE))
    shown = [it.shown_state for it in views]
    assert shown == ["InUse", f"Pending ({reason})"]
    ((verdict, message),) = await doctor(stage, "waiting-pods")
    assert verdict == "problem"
    assert words in message
    assert "1 pod waits since" in message
