"""What the controller wants of a cluster before it starts."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from claimctl.controller import preflight
from claimctl.controller.preflight import (
    ACTION_RIGHTS,
    GROUP_ACTION_RIGHTS,
    NotReady,
    check_rights,
    check_served,
    may_follow_groups,
    missing_rights,
)
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import ApiError, ServerError
from claimctl.wire.access_reviews import Right
from claimctl.wire.resources import PODS
from tests.support.builders import NOW
from tests.support.counting_server import server
from tests.unit.controller.cluster import define_custom_resources


class Reviewed(Client):
    """A client whose access reviews a test answers."""

    def __init__(self, denied: Container[str] = (), error: ApiError | None = None) -> None:
        super().__init__(server().transport, LoopClock(NOW))
        self.denied, self.error = denied, error
        self.asked: list[str] = []
        self.places: dict[str, list[str]] = {}

    async def allowed(self, right: Right, namespace: str = "") -> bool:
        if self.error is not None:
            raise self.error
        self.asked.append(str(right))
        self.places.setdefault(str(right), []).append(namespace)
        return str(right) not in self.denied


async def test_a_cluster_with_claimctls_resources_is_served() -> None:
    made = server()
    define_custom_resources(made)
    await check_served(made.client)


async def test_a_missing_custom_resource_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(NotReady) as raised:
        await check_served(server().client)
    text = "the CustomResourceDefinition claimreservations.claimctl.io is missing"
    assert str(raised.value) == f"{text}: claimctl install --component crds"


async def test_a_resource_of_kubernetes_that_is_not_served_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown = replace(PODS, plural="oddments")
    monkeypatch.setattr(preflight, "WATCHED", (PODS, unknown))
    with pytest.raises(NotReady, match=r"^the cluster does not serve oddments of v1$"):
        await check_served(server().client)


async def test_a_controller_with_all_rights_is_told_nothing() -> None:
    client = Reviewed()
    with capture_logs() as lines:
        await check_rights(client, binding=True, groups=True)
    assert lines == []
    assert {"list nodes", "watch resourceclaims.resource.k8s.io"} <= set(client.asked)


@pytest.mark.parametrize(
    ("flags", "asks"),
    [
        pytest.param({"binding": False}, (False, False), id="before 1.36"),
        pytest.param({"binding": True}, (True, False), id="from 1.36 on"),
        pytest.param({"binding": True, "groups": True}, (True, True), id="podgroup"),
    ],
)
async def test_only_rights_that_the_cluster_asks_for_are_wanted(
    flags: dict[str, bool], asks: tuple[bool, bool]
) -> None:
    client = Reviewed()
    await check_rights(client, binding=flags["binding"], groups=flags.get("groups", False))
    binding = "patch resourceclaims/binding.resource.k8s.io" in client.asked
    groups = "watch podgroups.scheduling.k8s.io" in client.asked
    assert (binding, groups) == asks
    assert all(str(right) in client.asked for right in ACTION_RIGHTS)
    assert all((str(right) in client.asked) is asks[1] for right in GROUP_ACTION_RIGHTS)


async def test_a_read_that_is_forbidden_keeps_the_controller_from_starting() -> None:
    client = Reviewed({"watch pods", "list jobs.batch", "get pods"})
    with pytest.raises(NotReady) as raised:
        await check_rights(client, binding=False)
    assert (
        str(raised.value)
        == "not permitted: watch pods, list jobs.batch: claimctl install --component rbac"
    )


async def test_a_write_that_is_forbidden_is_logged() -> None:
    client = Reviewed({"patch resourceclaims/status.resource.k8s.io", "get pods"})
    with capture_logs() as lines:
        await check_rights(client, binding=False)
    (line,) = lines
    assert line["missing"] == "patch resourceclaims/status.resource.k8s.io, get pods"


async def test_a_controller_of_some_namespaces_needs_its_writes_only_there() -> None:
    client = Reviewed(
        {"patch downgradeplans/status.claimctl.io", "patch workloadkinds/status.claimctl.io"}
    )
    with capture_logs() as lines:
        await check_rights(client, binding=True, namespaces=frozenset({"ml", "dev"}))
    assert lines == []
    assert client.places["patch resourceclaims/status.resource.k8s.io"] == ["dev", "ml"]
    assert client.places["patch resourceclaims/binding.resource.k8s.io"] == [""]
    assert client.places["list pods"] == [""]


async def test_a_server_without_access_reviews_is_believed_to_permit_everything() -> None:
    client = Reviewed(error=ServerError("POST", "/apis"))
    with capture_logs() as lines:
        await check_rights(client, binding=True, groups=True)
    assert [line["event"] for line in lines] == ["rights are not checked"]
    assert await may_follow_groups(client)


@pytest.mark.parametrize(
    ("denied", "may"),
    [
        ((), True),
        (("list podgroups.scheduling.k8s.io",), False),
        (("watch podgroups.scheduling.k8s.io",), False),
        (("create podgroups.scheduling.k8s.io",), True),
    ],
)
async def test_groups_are_followed_if_they_may_be_listed_and_watched(
    denied: tuple[str, ...], may: bool
) -> None:
    assert await may_follow_groups(Reviewed(denied)) is may


async def test_missing_rights_are_reads_and_writes_in_their_order() -> None:
    client = Reviewed({"get pods", "watch nodes", "patch resourceclaims/binding.resource.k8s.io"})
    found = await missing_rights(client, binding=True, groups=False)
    assert found == ("watch nodes", "get pods", "patch resourceclaims/binding.resource.k8s.io")
    assert await missing_rights(client, binding=False, groups=False) == found[:2]
