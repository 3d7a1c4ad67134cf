"""The controller's Deployment."""

from __future__ import annotations

import pytest

from claimctl.commands.doctor.account import deployments_of
from claimctl.commands.doctor.model import CheckVerdict
from claimctl.installation import Address
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
