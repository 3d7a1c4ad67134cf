"""The rights of the controller's ServiceAccount, and kinds of workloads that it cannot know."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.model import Finding
from claimctl.commands.doctor.rights import kind_problems, missing_rights_of
from claimctl.installation import own_name
from claimctl.kube.errors import Forbidden
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


async def test_the_rights_are_those_of_the_account_and_not_the_users() -> None:
    made = Server.started()
    asked = []

    def hook(point: FaultPoint) -> Fault | None:
        asked.append(point.plural)
        return None

    made.handler.fault = hook
    lacking = await missing_rights_of(
        made.client, ControllerAccount("x"), binding=True, groups=True
    )
    assert lacking == ()
    assert set(asked) == {"subjectaccessreviews"}


async def test_who_may_not_ask_is_told_so() -> None:
    made = Server.started()
    made.handler.fault = lambda point: Fault(status=403, reason="Forbidden")
    with pytest.raises(Forbidden):
        await missing_rights_of(made.client, ControllerAccount("x"), binding=False, groups=False)
    assert await own_name(made.client) == ""
