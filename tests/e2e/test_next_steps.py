"""Every printed next step, run in the state that prints it: it helps, and does no harm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset, Timings

from claimctl.wire.traces import AVOID_TAINT, TAINT_VALUE_PREFIX
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import DEPLOYMENT, JOB, POD, RESERVATION, Workload
from tests.e2e.commands import ServedCluster, cluster
from tests.e2e.next_steps import follow
from tests.e2e.printed import pattern, printed_commands

pytestmark = [pytest.mark.alone, pytest.mark.real_time(120)]

TRAIN = Workload("ml", "train", "slice", 2)
EVAL = Workload("ml", "eval-gpu", "eval-gpu")
RESERVED = Workload("ml", "train", "slice", 2, reserve=True)
BYSTANDER = Workload("prod", "other", "beside", 1)
SCARCE = ClusterOptions(
    preset=Preset.PLAIN, nodes=1, devices_per_node=2, timings=Timings(node_monitor_grace=1.0)
)
"""Two devices: one for the bystander."""
RELEASE = "claimctl release slice -n ml"
SUSPEND = """kubectl -n ml patch job/train --type=merge -p '{"spec":{"suspend":true}}'"""
TIMEOUT = "claimctl.io/idle-timeout-seconds"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A state of the cluster, and where its reader looks first.

    Attributes:
        printed: the commands that the text and those after it print, in the order in which they
            are run.
            comes: what is so after they were run.
        instead: printed commands that are a way of their own, and are not run.
        options: of the cluster.
        shortens_grace: whether a command states what ends the grace of vanished pods. The witness
            knows no such statement.
    """

    name: str
    build: Callable[[ServedCluster, Acts], Awaitable[None]]
    look: str
    printed: tuple[str, ...]
    comes: Callable[[ServedCluster, Acts], bool]
    instead: tuple[str, ...] = ()
    options: ClusterOptions = SCARCE
    shortens_grace: bool = False


def _is_free(_: ServedCluster, acts: Acts) -> bool:
    return acts.allocation(TRAIN) is None


def _is_held(_: ServedCluster, acts: Acts) -> bool:
    return acts.allocation(TRAIN) is not None and len(acts.workloads(TRAIN)) == 1


def _all_runs(_: ServedCluster, acts: Acts) -> bool:
    return acts.all_run(TRAIN)


def _eval_runs(_: ServedCluster, acts: Acts) -> bool:
    return any(pod.status.phase == "Running" for pod in acts.stage.world.pods_in("ml"))


def _nothing_runs(served: ServedCluster, acts: Acts) -> bool:
    return not _eval_runs(served, acts)


def _is_gone(_: ServedCluster, acts: Acts) -> bool:
    return acts.claim(TRAIN) is None


async def _held(_: ServedCluster, acts: Acts) -> None:
    await acts.held(TRAIN)
    await acts.recorded(TRAIN)


async def _idle(_: ServedCluster, acts: Acts) -> None:
    await acts.held(TRAIN, idleTimeoutSeconds=3600)
    await acts.change(TRAIN, {"replicas": 0})
    reservations = acts.stage.world.reservations
    await acts.stage.until(
        lambda: any(each.status.idle_since for each in reservations.values()), "it is idle"
    )


async def _job(_: ServedCluster, acts: Acts) -> None:
    await acts.reserve(TRAIN, JOB)
    await acts.stage.user.create(objects.job(TRAIN, at_once=2, run_seconds=600))
    await acts.runs(TRAIN)
    await acts.held_again(TRAIN)


async def _abandoned(_: ServedCluster, acts: Acts) -> None:
    await acts.held(TRAIN, retentionPolicy="Manual")
    await acts.recorded(TRAIN)
    await acts.stage.user.delete(DEPLOYMENT, "ml", "train")
    await acts.stage.until(lambda: not acts.pods(TRAIN), "its pods are gone")


async def _annotated(acts: Acts, **annotations: str) -> None:
    body = objects.deployment(TRAIN)
    body["metadata"]["annotations"] = annotations
    await acts.claim_made("ml", "slice")
    await acts.stage.user.create(body)
    await acts.runs(TRAIN)


async def _wrong_claim(_: ServedCluster, acts: Acts) -> None:
    await _annotated(acts, **{"claimctl.io/reserve": "nosuch"})


async def _wrong_timeout(_: ServedCluster, acts: Acts) -> None:
    await _annotated(acts, **{"claimctl.io/reserve": "*", TIMEOUT: "soon"})


async def _not_reserved(_: ServedCluster, acts: Acts) -> None:
    await _annotated(acts)


async def _starved(_: ServedCluster, acts: Acts) -> None:
    """A pod waits for the device that a workload holds idle."""
    await _idle(_, acts)
    await acts.claim_made("ml", "eval-gpu")
    await _single(acts)
    pods = acts.stage.world.pods_in
    await acts.stage.until(
        lambda: any(pod.status.conditions for pod in pods("ml")), "the scheduler has refused it"
    )


async def _asked(served: ServedCluster, acts: Acts) -> None:
    """A release that waits for the pods of its workload."""
    await acts.held(TRAIN)
    await acts.recorded(TRAIN)
    assert (await served.claimctl("release", "slice", "-n", "ml")).code == 0


async def _leaked(served: ServedCluster, acts: Acts) -> None:
    await served.create_allocated("slice")


async def _without_claim(_: ServedCluster, acts: Acts) -> None:
    await acts.stage.user.create(objects.deployment(TRAIN))
    await acts.stage.user.create(objects.reservation(TRAIN, DEPLOYMENT))
    made = acts.stage.world.reservations
    await acts.stage.until(
        lambda: any(each.status.conditions for each in made.values()), "it has a status"
    )


def _node(served: ServedCluster, name: str) -> dict[str, Any]:
    """The node as it is now."""
    nodes = (each for each in served.embedded.history() if each.plural == "nodes")
    *_, last = (each.object() for each in nodes if each.name == name)
    return last


def _is_silent(served: ServedCluster, name: str) -> bool:
    """Whether kube-controller-manager says that the node is not ready."""
    conditions = _node(served, name)["status"]["conditions"]
    ready = [each for each in conditions if each["type"] == "Ready"]
    return any(each["status"] != "True" for each in ready)


async def _node_is_off(served: ServedCluster, acts: Acts) -> None:
    """A pod was force-deleted from a node that is silent."""
    await acts.held(TRAIN, forceDeletedPodGraceSeconds=3600)
    (node,) = acts.nodes(TRAIN)
    served.embedded.lose_node(node)
    await acts.stage.user.delete(DEPLOYMENT, "ml", "train")
    await acts.stage.until(
        lambda: all(pod.metadata.deleting for pod in acts.pods(TRAIN)), "its pods are to go"
    )
    for pod in acts.pods(TRAIN):
        served.embedded.force_delete("ml", pod.metadata.name)
    reservations = acts.stage.world.reservations
    await acts.stage.until(
        lambda: any(
            len(each.status.force_deleted_pods) == TRAIN.pods for each in reservations.values()
        ),
        "the pods count as force-deleted",
    )
    await acts.stage.until(lambda: _is_silent(served, node), "the node is silent")


async def _without_workload(_: ServedCluster, acts: Acts) -> None:
    await acts.claim_made("ml", "slice")
    await acts.stage.user.create(objects.reservation(TRAIN, DEPLOYMENT))
    made = acts.stage.world.reservations
    await acts.stage.until(
        lambda: any(each.status.conditions for each in made.values()), "it has a status"
    )


async def _tainted(served: ServedCluster, _: Acts) -> None:
    taint = {"key": AVOID_TAINT, "value": f"{TAINT_VALUE_PREFIX}u", "effect": "PreferNoSchedule"}
    served.embedded.admin.patch("nodes", "", "node-0", {"spec": {"taints": [taint]}})


async def _grouped(_: ServedCluster, acts: Acts) -> None:
    await acts.create(replace(TRAIN, group="train"))
    await acts.runs(TRAIN)
    await acts.recorded(TRAIN)


async def _single(acts: Acts) -> None:
    """A pod without a workload."""
    spec = objects.deployment(Workload("ml", "eval", "eval-gpu"))["spec"]["template"]["spec"]
    meta = {"namespace": "ml", "name": "eval"}
    body = {"apiVersion": "v1", "kind": POD[1], "metadata": meta, "spec": spec}
    await acts.stage.user.create(body)


async def _of_single_pod(_: ServedCluster, acts: Acts) -> None:
    """A ClaimReservation that names itself holds the claim of a pod without a workload."""
    await acts.claim_made("ml", "eval-gpu")
    await acts.stage.user.create(objects.reservation(EVAL, RESERVATION))
    await _single(acts)
    await acts.recorded(EVAL)


async def _pod_without_claim(_: ServedCluster, acts: Acts) -> None:
    await _single(acts)


async def _without_template(_: ServedCluster, acts: Acts) -> None:
    """A pod with a claim from a template that does not exist."""
    await acts.stage.user.create(objects.generating("ml", "eval", 1, "nosuch", "node-0"))
    pods = acts.stage.world.pods_in
    await acts.stage.until(lambda: len(pods("ml")) == 1, "its pod is made")


STATES = (
    ClusterState(
        "a claim that is well",
        _held,
        "claimctl explain slice -n ml",
        ("kubectl -n ml scale deployment/train --replicas=0", RELEASE),
        _is_free,
    ),
    ClusterState(
        "a claim of a Job",
        _job,
        "claimctl explain slice -n ml",
        (SUSPEND, RELEASE),
        _is_free,
    ),
    ClusterState(
        "a claim of a pod that no workload makes",
        _of_single_pod,
        "claimctl explain eval-gpu -n ml",
        ("kubectl -n ml delete pod eval", "claimctl release eval-gpu -n ml"),
        lambda _, acts: acts.allocation(EVAL) is None,
    ),
    ClusterState(
        "a claim that is held idle",
        _idle,
        "claimctl explain slice -n ml",
        (RELEASE,),
        _is_free,
    ),
    ClusterState(
        "a claim of a workload that is gone",
        _abandoned,
        "claimctl explain slice -n ml",
        (RELEASE,),
        _is_free,
    ),
    ClusterState(
        "the same as doctor says it",
        _abandoned,
        "claimctl doctor -n ml",
        (RELEASE,),
        _is_free,
    ),
    ClusterState(
        "an annotation that names no claim of its pods",
        _wrong_claim,
        "claimctl explain deployment/train -n ml",
        ("kubectl -n ml annotate deployment/train --overwrite 'claimctl.io/reserve=*'",),
        _is_held,
    ),
    ClusterState(
        "the same from the claim",
        _wrong_claim,
        "claimctl explain slice -n ml",
        ("kubectl -n ml annotate deployment/train --overwrite 'claimctl.io/reserve=*'",),
        _is_held,
    ),
    ClusterState(
        "an annotation with a wrong number",
        _wrong_timeout,
        "claimctl explain slice -n ml",
        (f"kubectl -n ml annotate deployment/train {TIMEOUT}-",),
        _is_held,
    ),
    ClusterState(
        "a workload that nobody reserves for",
        _not_reserved,
        "claimctl explain deployment/train -n ml",
        ("kubectl -n ml annotate deployment/train 'claimctl.io/reserve=*'",),
        _is_held,
    ),
    ClusterState(
        "a pod that waits for a device that is held idle",
        _starved,
        "claimctl explain eval-gpu -n ml",
        ("claimctl explain pod/eval -n ml", RELEASE),
        _eval_runs,
    ),
    ClusterState(
        "a release that waits for pods",
        _asked,
        "claimctl explain slice -n ml",
        ("kubectl -n ml scale deployment/train --replicas=0",),
        _is_free,
    ),
    ClusterState(
        "the same as doctor says it",
        _asked,
        "claimctl doctor -n ml",
        (
            "claimctl explain slice -n ml",
            "kubectl -n ml scale deployment/train --replicas=0",
        ),
        _is_free,
        instead=("claimctl release --cancel slice -n ml",),
    ),
    ClusterState(
        "a release that is taken back",
        _asked,
        "claimctl doctor -n ml",
        ("claimctl release --cancel slice -n ml",),
        _is_held,
        instead=("claimctl explain slice -n ml",),
    ),
    ClusterState(
        "devices that nobody holds",
        _leaked,
        "claimctl explain slice -n ml",
        ("claimctl doctor orphans -n ml",),
        lambda served, acts: not _is_free(served, acts),
    ),
    ClusterState(
        "a reservation of a claim that does not exist",
        _without_claim,
        "claimctl doctor -n ml",
        (),
        _is_gone,
    ),
    ClusterState(
        "a reservation without its workload",
        _without_workload,
        "claimctl explain slice -n ml",
        ("kubectl -n ml get deployment",),
        _is_free,
    ),
    ClusterState(
        "the same reservation as doctor says it",
        _without_workload,
        "claimctl doctor -n ml",
        ("claimctl explain crsv/slice -n ml", "kubectl -n ml get deployment"),
        _is_free,
    ),
    ClusterState(
        "a taint that a run of reschedule left behind",
        _tainted,
        "claimctl doctor",
        ("claimctl reschedule --release-taints",),
        lambda served, _: not _node(served, "node-0")["spec"].get("taints"),
    ),
    ClusterState(
        "PodGroups that the next version does not serve",
        _grouped,
        "claimctl doctor",
        ("claimctl upgrade prepare --to 1.37 --dry-run",),
        lambda served, acts: not _is_free(served, acts),
        options=replace(SCARCE, preset=Preset.POD_GROUPS),
    ),
    ClusterState(
        "a pod without its claim",
        _pod_without_claim,
        "claimctl explain pod/eval -n ml",
        ("kubectl -n ml get resourceclaims",),
        _nothing_runs,
    ),
    ClusterState(
        "a workload whose template of claims does not exist",
        _without_template,
        "claimctl explain deployment/eval -n ml",
        ("kubectl -n ml get resourceclaimtemplates",),
        _nothing_runs,
    ),
    ClusterState(
        "pods that vanished from a node that is off",
        _node_is_off,
        "claimctl explain slice -n ml",
        ("claimctl release slice -n ml --node-is-off node-1",),
        _is_free,
        options=replace(SCARCE, nodes=2, devices_per_node=1),
        shortens_grace=True,
    ),
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"{state.name}: {state.look}")
async def test_it_helps_and_does_no_harm(state: ClusterState, tmp_path: Path) -> None:
    async with cluster(state.options, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("prod")
        await acts.room("ml")
        await acts.held(BYSTANDER)
        await state.build(served, acts)
        played, text = await follow(served, state.look, state.instead)
        assert tuple(played) == state.printed, text
        await served.stage.until(lambda: state.comes(served, acts), state.name)
        acts.expect_held(BYSTANDER)
        if state.shortens_grace:
            served.stage.witness.violations.clear()


async def test_without_a_controller_the_steps_only_look(tmp_path: Path) -> None:
    async with cluster(SCARCE, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await served.stage.dismiss_controller()
        await acts.claim_made("ml", "slice")
        await acts.stage.user.create(objects.deployment(RESERVED))
        await acts.runs(TRAIN)
        played, text = await follow(served, "claimctl explain slice -n ml")
        assert "claimctl doctor" in played, text
        assert _all_runs(served, acts)


NO_STATE = {
    "claimctl install {}": "needs a cluster without a part of claimctl",
    "claimctl doctor --as system:serviceaccount:claimctl-system:claimctl-controller": "rights only",
    "claimctl doctor": "run by the test without a controller",
    "claimctl doctor driver": "needs a driver: test_driver_check.py",
    "claimctl downgrade status": "played by the runbook of the downgrade",
    "claimctl get": "says which names the command takes",
    "claimctl install --component crds": "needs a cluster without the CRDs",
    "claimctl install --component rbac": "needs a cluster without the roles",
    "claimctl install --component sticky-claims": "needs the policy: test_sticky_commands.py",
    "claimctl install --component workloads": "needs a kind that the controller may not read",
    "claimctl release": "a word of a meaning, not a step",
    "claimctl reserve {}/{} -n {}": "names who decides in place of a copy: test_kinds_commands.py",
    "claimctl reschedule --policy-config-file FILE --why NAMESPACE/POD": "is about no pod",
    "claimctl reschedule --policy-config-file FILE --why {}/{}": "needs the reader's policy file",
    "claimctl reschedule lets one through at a time": "a sentence",
    "claimctl upgrade status": "played by the runbook of the upgrade",
    "kubectl -n claimctl-system get pods": "only looks; the test's controller is no pod",
    "kubectl -n {} delete podgroup {}": "needs a group that outlived claimctl",
    "kubectl -n {} delete resourceclaim {}": "no state has a claim that nothing holds",
    "kubectl -n {} describe claimreservation {}": "explain ends with exit code 1",
    "kubectl -n {} describe pod {}": "only looks; no state has a pod that waits without a rival",
    "kubectl create clusterrole {} --verb={} --resource={}.{} && kubectl label clusterrole {} {}"
    "=true": "run by the test of the commands for kinds",
    "kubectl describe node {}": "only looks; no state has a resize that no node can meet",
    "kubectl describe pod": "only looks; no state has a pod that waits without a rival",
    "kubectl get pods -A -l app.kubernetes.io/name=claimctl": "only looks",
    "kubectl get deviceclasses": "only looks",
    "kubectl get resourceslices --field-selector spec.driver={}": "only looks",
    "kubectl get resourceclaim CLAIM -o yaml --show-managed-fields": "no state has two writers",
    "kubectl uncordon {}": "followed by the test of what keeps pods from a held claim",
}
"""Printed commands that no state runs, and why."""


def test_every_printed_command_is_run_in_a_state() -> None:
    """A new one needs a state that prints it, or a reason why it has none."""
    run = {command for state in STATES for command in state.printed}
    left = {
        command for command in printed_commands() if not any(map(pattern(command).fullmatch, run))
    }
    assert left == set(NO_STATE)
