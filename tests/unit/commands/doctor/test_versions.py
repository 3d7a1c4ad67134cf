"""The versions of a cluster, and whether they go together."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl import __version__
from claimctl.commands.claims.election import State
from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.versions import Skew, read_versions, release_of, skew_of
from tests.support.claim_server import Server
from tests.support.diagnosing import deployed, elected


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("claimctl:0.1.0", "0.1.0"),
        ("registry.example.com:5000/claimctl:v1.2.3-rc.1", "1.2.3-rc.1"),
        ("registry.example.com/claimctl:0.1.0@sha256:abc", "0.1.0"),
        ("registry.example.com:5000/claimctl", ""),
        ("claimctl:latest", ""),
        ("claimctl@sha256:abc", ""),
    ],
)
def test_an_images_tag_may_be_a_version(image: str, release: str) -> None:
    assert release_of(image) == release


def account(image: str) -> ControllerAccount:
    return ControllerAccount("claimctl-system", images=(image,))


MINOR = ".".join(__version__.split(".")[:2])


@pytest.mark.parametrize(
    ("controller", "crds", "verdict", "words"),
    [
        (None, "", Skew.UNKNOWN, "neither"),
        (account("claimctl:latest"), "", Skew.UNKNOWN, "neither"),
        (account(f"claimctl:{MINOR}.99"), "", Skew.NONE, f"controller {MINOR}.99"),
        (None, __version__, Skew.NONE, f"crds {__version__}"),
        (account("claimctl:99.0.0"), __version__, Skew.DIFFERENT, "controller 99.0.0; upgrade"),
        (account(f"claimctl:{__version__}"), "99.0.0", Skew.DIFFERENT, "crds 99.0.0"),
    ],
)
def test_the_verdict_compares_major_and_minor(
    controller: ControllerAccount | None, crds: str, verdict: Skew, words: str
) -> None:
    found, text = skew_of(controller, crds)
    assert found is verdict
    assert words in text


async def test_everything_is_read_from_the_cluster() -> None:
    server = Server.started()
    elected(server)
    deployed(server, ready=1)
    server.claim()
    server.reservation(status={"dialect": "native"})
    found = await read_versions(server.client, server.clock)
    assert (found.kubernetes, found.crds_from, found.dialect) == ("1.36", __version__, "native")
    assert found.served_versions["claimctl.io"] == ("v1alpha1",)
    assert found.controller is not None
    assert (found.controller.deployment, found.controller.ready) == ("keeper", 1)
    assert found.lease.state is State.ACTING


async def test_what_may_not_be_read_or_is_not_there_is_left_out() -> None:
    server = Server.started(crds=False)

    def hook(point: FaultPoint) -> Fault | None:
        return Fault(status=403, reason="Forbidden") if point.plural else None

    server.handler.fault = hook
    found = await read_versions(server.client, server.clock)
    assert (found.crds_from, found.controller, found.dialect) == (None, None, None)
    assert found.served_versions["claimctl.io"] == ()
    assert found.skew.verdict is Skew.UNKNOWN
