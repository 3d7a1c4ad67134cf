"""The versions of a cluster, and whether they go together."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl import __version__
from claimctl.commands.claims.controller_health import Election, State
from claimctl.commands.doctor.account import ControllerAccount, Installation
from claimctl.commands.doctor.versions import Skew, Versions, release_of, versions
from claimctl.installation import Address
from claimctl.kube.discovery import Served
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


def made(image: str = "", crds: str = "") -> Versions:
    return Versions(
        there=Installation(
            kubernetes=(1, 36),
            served=Served(("v1",)),
            account=ControllerAccount("claimctl-system", images=(image,)) if image else None,
            refused="",
            election=Election(State.ACTING, ""),
            address=Address(),
        ),
        crds=("v1alpha1",),
        crds_release=crds,
        dialect="hold",
    )


MINOR = ".".join(__version__.split(".")[:2])


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (made(), Skew.UNKNOWN, "neither"),
        (made("claimctl:latest"), Skew.UNKNOWN, "neither"),
        (made(f"claimctl:{MINOR}.99"), Skew.NONE, f"controller {MINOR}.99"),
        (made(crds=__version__), Skew.NONE, f"crds {__version__}"),
        (made("claimctl:99.0.0", __version__), Skew.DIFFERENT, "controller 99.0.0; upgrade"),
        (made(f"claimctl:{__version__}", "99.0.0"), Skew.DIFFERENT, "crds 99.0.0"),
    ],
)
def test_the_verdict_compares_major_and_minor(found: Versions, verdict: Skew, words: str) -> None:
    assert found.skew[0] is verdict
    assert words in found.skew[1]


async def test_everything_is_read_from_the_cluster() -> None:
    server = Server.started()
    elected(server)
    deployed(server, ready=1)
    server.claim()
    server.reservation(status={"dialect": "native"})
    found = await versions(server.client, server.clock)
    assert (found.there.kubernetes, found.crds, found.crds_release) == (
        (1, 36),
        ("v1alpha1",),
        __version__,
    )
    assert found.there.account is not None
    assert (found.there.account.deployment, found.there.account.ready) == ("keeper", 1)
    assert (found.there.election.state, found.dialect) == (State.ACTING, "native")


async def test_what_may_not_be_read_or_is_not_there_is_left_out() -> None:
    server = Server.started(crds=False)

    def hook(point: FaultPoint) -> Fault | None:
        return Fault(status=403, reason="Forbidden") if point.plural else None

    server.handler.fault = hook
    found = await versions(server.client, server.clock)
    assert (found.crds, found.crds_release, found.there.account) == ((), "", None)
    assert found.skew[0] is Skew.UNKNOWN
