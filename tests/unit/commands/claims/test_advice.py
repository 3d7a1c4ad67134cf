"""What explain advises: the command to run, once, and only what helps."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.advice import advice, to_stop
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.commands.claims.workload_advice import workload_advice
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.kinds.rules import Rule
from claimctl.wire.reservations import (
    RELEASE_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    WorkloadRef,
)
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import claim_lines
from tests.support.waiting import asks

Json = dict[str, Any]


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_after_a_release_nothing_advises_to_release_again() -> None:
    server = Server.holding(replicas=0, retentionPolicy="Persistent")
    status = {"status": {"allocation": None, "reservedFor": None}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", status, "status")
    told = await explained(server)
    assert claim_lines(told)[-3:] == [
        "Release:    nothing to release, it is not allocated",
        "What to do:",
        "  Nothing: the claim holds no device, and no pod waits for it.",
    ]


async def test_pods_that_no_workload_wants_are_named_in_the_command() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    for name in "gfedcba":
        server.pod(name)
    server.reservation(status=server.held_status(reference))
    assert advice(await explained(server)) == (
        "Nothing is wrong.",
        "To free its devices: wait for its pods, or delete them: "
        "kubectl -n ml delete pod a b c d e f g",
        "Then free them at once: claimctl release slice -n ml",
    )
    release = {"metadata": {"annotations": {RELEASE_ANNOTATION: uid_of(server)}}}
    server.admin.patch("claimreservations", NAMESPACE, "train", release)
    assert advice(await explained(server)) == (
        "Wait for its pods, or delete them: kubectl -n ml delete pod a b c d e f g",
    )


def uid_of(server: Server) -> str:
    return str(server.admin.get("resourceclaims", NAMESPACE, "slice")["metadata"]["uid"])


async def test_a_claim_that_a_pod_waits_for_leads_to_the_pod() -> None:
    server = Server.started()
    asks(server, "slice")
    server.pod("eval", node="")
    (line,) = advice(await explained(server))
    assert line == ("Pod eval waits for its devices; see why: claimctl explain pod/eval -n ml")


@pytest.mark.parametrize(
    ("annotations", "fix"),
    [
        (
            {"claimctl.io/reserve": "nosuch"},
            "Correct the annotation: kubectl -n ml annotate deployment/train --overwrite "
            "'claimctl.io/reserve=*'",
        ),
        (
            {"claimctl.io/reserve": "*", "claimctl.io/idle-timeout-seconds": "1h"},
            "Remove the annotation, or correct its value: kubectl -n ml annotate deployment/train "
            "claimctl.io/idle-timeout-seconds-",
        ),
    ],
)
async def test_a_wrong_annotation_is_never_nothing(annotations: Json, fix: str) -> None:
    server = Server.started()
    server.claim("slice", server.pod("a"))
    server.deployment(annotations=annotations)
    told = await explained(server)
    assert advice(told)[0] == fix
    assert not any("Nothing" in line or "scale" in line for line in claim_lines(told))
    workload = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert fix in workload_advice(workload)


async def test_a_wrong_annotation_hides_no_release_of_an_idle_claim() -> None:
    server = Server.started()
    annotations = {"claimctl.io/reserve": "*", "claimctl.io/idle-timeout-seconds": "1h"}
    reference = server.deployment(replicas=0, annotations=annotations)
    server.claim("slice", reference)
    server.reservation(status=server.held_status(reference), retentionPolicy="Persistent")
    correction, release = advice(await explained(server))
    assert correction.endswith("claimctl.io/idle-timeout-seconds-")
    assert release == "To free its devices: claimctl release slice -n ml"


async def test_a_claim_that_cannot_be_held_is_never_scaled_to_zero() -> None:
    """KEP-5194: spec.reservedFor is missing, so that the last pod takes the devices with it."""
    server = Server.started()
    reference = server.deployment()
    server.reservation()
    asks(server, "slice")
    device = {"request": "gpu", "driver": "d.example.com", "pool": "n1", "device": "slice"}
    status = {
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": [server.pod("a")],
    }
    server.admin.patch("resourceclaims", NAMESPACE, "slice", {"status": status}, "status")
    server.admin.patch(
        "claimreservations", NAMESPACE, "train", {"status": {"dialect": "native"}}, "status"
    )
    told = await explained(server)
    assert advice(told)[0].startswith("Recreate the claim from a ResourceClaimTemplate")
    assert not any("scale" in line or "Nothing" in line for line in advice(told))
    assert reference["name"] == "train"


async def test_a_hold_for_a_workload_that_is_gone_says_so_and_how_to_free_it() -> None:
    server = Server.holding(replicas=0, retentionPolicy="Manual")
    server.admin.delete("deployments", NAMESPACE, "train")
    assert advice(await explained(server)) == (
        "Deployment train does not exist any more. If nobody needs the devices, free them: "
        "claimctl release slice -n ml",
    )


async def test_a_claim_without_devices_would_be_held_and_has_nothing_to_release() -> None:
    server = Server.started()
    server.deployment()
    asks(server, "slice")
    server.pod("a", node="")
    server.reservation(retentionPolicy="Persistent")
    shown = claim_lines(await explained(server))
    assert "Release:    nothing to release, it is not allocated" in shown
    assert not any("ConsumersLeft" in line or " holds " in line for line in shown)


async def test_an_idle_time_says_when_it_ends() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    since = {"idleSince": "2026-03-01T11:59:30Z"}
    server.reservation(status=server.held_status(reference) | since)
    (line,) = [line for line in claim_lines(await explained(server)) if "IdleTimeout" in line]
    assert line.endswith("released after 60 s without pods; 30s left, until 12:00:30Z")


async def test_a_pod_that_vanished_says_until_when_it_counts() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    ghost = {"uid": "a", "name": "train-a", "nodeName": "n1", "since": "2026-03-01T11:59:00Z"}
    status = server.held_status(reference) | {"forceDeletedPods": [ghost]}
    server.reservation(status=status, forceDeletedPodGraceSeconds=300, idleTimeoutSeconds=0)
    (line,) = [line for line in claim_lines(await explained(server)) if "ForceDeletedPods" in line]
    assert "train-a" in line
    assert "n1" in line
    assert "for 300 s (until 2026-03-01T12:04:00Z by the controller's clock, 4m left)" in line


SUSPEND = """--type=merge -p '{"spec":{"suspend":true}}'"""
SUSPEND_POLICY = """--type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'"""


@pytest.mark.parametrize(
    ("group", "kind", "command"),
    [
        ("batch", "Job", f"patch job/train {SUSPEND}"),
        ("apps", "StatefulSet", "scale statefulset/train --replicas=0"),
        ("jobset.x-k8s.io", "JobSet", f"patch jobsets.jobset.x-k8s.io/train {SUSPEND}"),
        ("kubeflow.org", "MPIJob", f"patch mpijobs.kubeflow.org/train {SUSPEND_POLICY}"),
        ("grove.io", "PodCliqueSet", "scale podcliquesets.grove.io/train --replicas=0"),
        # nothing is done to an object of which nobody has said how it ends
        ("kubevirt.io", "VirtualMachine", "get virtualmachines.kubevirt.io/train"),
        ("acme.example", "Gang", "get gangs.acme.example/train"),
    ],
)
def test_a_workload_is_stopped_as_its_kind_has_it(group: str, kind: str, command: str) -> None:
    ref = WorkloadRef(api_group=group, kind=kind, name="train")
    made = ClaimReservation(spec=ClaimReservationSpec(workload_ref=ref))
    plural = f"{kind.lower()}s" if "." in group else ""
    held = Held(made, WorkloadState(WorkloadPhase.ACTIVE), served_as=plural)
    assert to_stop("ml", held).endswith(f": kubectl -n ml {command}")


@pytest.mark.parametrize(
    ("idle", "verb"),
    [
        ("has(self.spec.suspend) && self.spec.suspend", "patch"),
        # a field of a longer name, and one that means the opposite
        ("has(self.spec.suspendedUntil) && self.spec.suspendedUntil > 0", "get"),
        ("!has(self.spec.suspend) || !self.spec.suspend", "get"),
    ],
)
def test_only_a_patch_that_makes_a_workload_idle_is_advised(idle: str, verb: str) -> None:
    ref = WorkloadRef(api_group="acme.example", kind="Gang", name="train")
    made = ClaimReservation(spec=ClaimReservationSpec(workload_ref=ref))
    rule = Rule(ref.api_group, ref.kind, "gangs", idle=idle)
    state = WorkloadState(WorkloadPhase.ACTIVE, rule=rule)
    command = to_stop("ml", Held(made, state, served_as="gangs"))
    assert f": kubectl -n ml {verb} gangs.acme.example/train" in command
