"""Kinds of workloads whose state the controller cannot know. The end-to-end tests show rights."""

from __future__ import annotations

from claimctl.commands.doctor.account import ControllerAccount, kind_problems
from claimctl.commands.doctor.cluster_checks import Finding
from claimctl.wire.reservations import WorkloadRef
from tests.support.builders import reservation
from tests.support.claim_server import Server


async def test_a_kind_that_a_reservation_names_and_the_cluster_does_not_serve() -> None:
    client = Server.started().client
    account = ControllerAccount("claimctl-system")
    ref = WorkloadRef(api_group="jobset.x-k8s.io", kind="JobSet", name="train")
    reserved = [reservation(), reservation(workload_ref=ref)]
    assert await kind_problems(client, account, reserved) == (
        Finding(
            "kinds",
            "the cluster does not serve JobSet of jobset.x-k8s.io",
            object="JobSet.jobset.x-k8s.io",
        ),
    )
