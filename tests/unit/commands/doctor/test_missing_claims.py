"""Pods that wait for claims that do not exist."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claimctl.commands.doctor.missing_claims import missing_claims
from claimctl.commands.doctor.model import Finding
from claimctl.commands.orphans.scan import scan_claims
from claimctl.wire.reservations import STICKY_CLAIMS_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server


async def missed(server: Server, after: float = 60.0) -> tuple[Finding, ...]:
    scan = await scan_claims(server.client, server.clock)
    now = server.clock.now() + timedelta(seconds=after)
    return missing_claims(scan, now)


async def test_pods_that_wait_for_a_claim_that_does_not_exist_are_a_problem() -> None:
    server = Server.started()
    server.claim("slice")
    server.pod("late", node="")
    for name in ("b", "a"):
        server.pod(name, claim="nosuch", node="")
    (finding,) = await missed(server)
    assert (finding.check, finding.object) == ("waiting-pods", "nosuch")
    assert finding.message == (
        "the claim does not exist; 2 pods wait since 2026-03-01T12:00:00Z (60s): a, b; create the "
        "claim, or see `claimctl explain pod/a -n ml`"
    )


async def test_several_missing_claims_are_one_line() -> None:
    server = Server.started()
    for name in ("one", "two"):
        server.pod(f"p-{name}", claim=name, node="")
    (finding,) = await missed(server)
    assert finding.object == ""
    assert finding.message.startswith("2 claims do not exist: ml/one, ml/two; for the first one, 1")


@pytest.mark.parametrize("case", ["young", "runs", "unreadable"])
async def test_what_need_not_be_missed_is_not(case: str) -> None:
    server = Server.started()
    server.pod("a", node="n1" if case == "runs" else "")
    if case == "unreadable":
        server.claim("slice")
        server.spoil("resourceclaims", "slice")
    assert await missed(server, 9.0 if case == "young" else 60.0) == ()


async def test_who_has_to_make_a_sticky_claim_is_claimctl() -> None:
    server = Server.started()
    server.pod("train-0", claim="train-0.sts.gpu.big", node="")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train", "uid": "u"}
    meta = {
        "annotations": {STICKY_CLAIMS_ANNOTATION: "gpu=big"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    server.admin.patch("pods", NAMESPACE, "train-0", {"metadata": meta})
    (finding,) = await missed(server)
    assert "; claimctl has to make it: see `claimctl explain pod/train-0 -n ml`" in finding.message


def generating(server: Server, name: str, template: str = "big") -> None:
    """A pod without a node whose claim is to be made from a template."""
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    spec = {"containers": [{"name": "main", "image": "x"}], "resourceClaims": [entry]}
    meta = {"name": name, "namespace": NAMESPACE}
    server.admin.create("pods", {"metadata": meta, "spec": spec})


def made(server: Server, name: str) -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "slice"}]}
    server.admin.patch("pods", NAMESPACE, name, {"status": status}, "status")


async def test_pods_that_wait_for_claims_from_a_template_are_a_problem() -> None:
    server = Server.started()
    server.claim("slice")
    for name in ("b", "a", "c"):
        generating(server, name)
    made(server, "c")
    (finding,) = await missed(server)
    assert (finding.check, finding.object) == ("waiting-pods", "resourceclaimtemplate/big")
    assert finding.message == (
        "no claim is made from it; 2 pods wait since 2026-03-01T12:00:00Z (60s): a, b; see "
        "`claimctl explain pod/a -n ml`"
    )
    generating(server, "d", "small")
    (finding,) = await missed(server)
    both = "ml/resourceclaimtemplate/big, ml/resourceclaimtemplate/small"
    assert finding.message.startswith(f"no claim is made from 2: {both}; for the first one, 2 pods")
    assert await missed(server, 9.0) == ()
