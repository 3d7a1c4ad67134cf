"""The controller's Deployment and the rights of its ServiceAccount."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.commands.doctor.account import (
    ControllerAccount,
    deployments_of,
    missing_rights_of,
)
from claimctl.commands.doctor.cluster_checks import CheckVerdict
from claimctl.installation import Address, own_name
from claimctl.kube.errors import Forbidden
from tests.support.claim_server import Server
from tests.support.diagnosing import deployed, diagnosed, elected, the


@pytest.mark.parametrize(("ready", "verdict"), [(2, CheckVerdict.OK), (1, CheckVerdict.PROBLEM)])
async def test_a_deployment_with_all_pods_ready_is_well(ready: int, verdict: CheckVerdict) -> None:
    made = Server.started()
    elected(made)
    deployed(made, ready=ready)
    line = the(await diagnosed(made), "deployment")
    assert (line.verdict, line.namespace, line.object) == (verdict, "claimctl-system", "keeper")
    shown = f"{ready} of 2 pods ready, image registry.example.com/claimctl:0.1.0"
    assert line.message.startswith(shown)


async def test_the_deployment_is_found_by_its_labels() -> None:
    made = Server.started()
    assert (await deployments_of(made.client, Address())).account is None
    elected(made)
    deployed(made, ready=2)
    assert (await deployments_of(made.client, Address("other"))).account is None
    found = (await deployments_of(made.client, Address())).account
    assert found is not None
    assert found.user == "system:serviceaccount:claimctl-system:keeper"
    assert found.images == ("registry.example.com/claimctl:0.1.0",)


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
