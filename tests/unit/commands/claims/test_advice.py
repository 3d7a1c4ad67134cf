"""What explain advises: the command to run, once, and only what helps."""

from __future__ import annotations

from claimctl.commands.claims.advice import advice, to_stop
from claimctl.commands.claims.claim_text import lines
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.wire.reservations import WorkloadRef
from tests.support.claim_server import NAMESPACE, Server


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_after_a_release_nothing_advises_to_release_again() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    server.reservation(status=server.held_status(reference), retentionPolicy="Persistent")
    status = {"status": {"allocation": None, "reservedFor": None}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", status, "status")
    told = await explained(server)
    assert lines(told)[-3:] == [
        "Release:    nothing to release, it is not allocated",
        "What to do:",
        "  Nothing: the claim holds no device.",
    ]


async def test_pods_that_no_workload_wants_are_named_in_the_command() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    for name in "gfedcba":
        server.pod(name)
    server.reservation(status=server.held_status(reference))
    assert advice(await explained(server)) == (
        "Wait for its pods, or delete them: kubectl -n ml delete pod a b c d e f g",
    )


def test_a_job_is_suspended_and_a_set_is_scaled() -> None:
    job = WorkloadRef(api_group="batch", kind="Job", name="once")
    sets = WorkloadRef(api_group="apps", kind="StatefulSet", name="shard")
    patch = """kubectl -n ml patch job/once -p '{"spec":{"suspend":true}}'"""
    assert to_stop("ml", job).endswith(f": {patch}")
    assert to_stop("ml", sets).endswith(": kubectl -n ml scale statefulset/shard --replicas=0")
