"""One LIST of pods for several claims keeps the pods that matter to them, and no others."""

from __future__ import annotations

from kube_in_process.storage.requests import Fault

from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server
from tests.unit.downgrade.live_pods import list_pods_of


async def claims_of(server: Server, *names: str) -> list[ResourceClaim]:
    return [await server.client.get(RESOURCECLAIMS, name, NAMESPACE) for name in names]


def names(pods: PodsOfClaims, claim: ResourceClaim) -> list[str]:
    return sorted(pod.metadata.name for pod in pods.of(claim))


async def test_a_claim_has_the_pods_that_name_it_and_the_pods_that_it_lists() -> None:
    server = Server.started()
    server.claim("one")
    server.claim("two", shared=False)
    server.pod("a", claim="one")
    guest = server.pod("guest", claim="elsewhere")
    server.write_list(guest, server.pod("b", claim="two"), name="two")
    one, two = await claims_of(server, "one", "two")
    pods = await list_pods_of(server.client, [one, two])
    assert (names(pods, one), names(pods, two)) == (["a"], ["b", "guest"])


async def test_pods_of_other_claims_are_not_kept() -> None:
    server = Server.started()
    for claim in ("one", "two"):
        server.claim(claim)
        server.pod(f"pod-{claim}", claim=claim)
    (one,) = await claims_of(server, "one")
    pods = await list_pods_of(server.client, [one])
    assert [each.metadata.name for kept in pods.by_claim.values() for each in kept] == ["pod-one"]


async def test_if_there_are_too_many_pods_the_last_claims_wait_for_another_list() -> None:
    server = Server.started()
    names_of = ("a", "b", "c", "d")
    for claim in names_of:
        server.claim(claim)
        for number in range(3):
            server.pod(f"{number}-{claim}", claim=claim)
    lists = 0

    def count(_: int) -> None:
        nonlocal lists
        lists += 1

    server.upon("list", "pods", count)
    found: dict[str, list[str]] = {}
    most = 0
    claims = await claims_of(server, *names_of)
    async for chunk, pods in with_pods(server.client, claims, kept=7):
        most = max(most, sum(map(len, pods.by_claim.values())))
        assert pods.by_claim.keys() == {claim.metadata.name for claim in chunk}
        found |= {claim.metadata.name: names(pods, claim) for claim in chunk}
    assert pods.by_claim == {}
    assert found == {claim: [f"{number}-{claim}" for number in range(3)] for claim in names_of}
    assert (lists, most) == (2, 6)


async def test_a_claim_with_too_many_pods_has_a_list_of_its_own() -> None:
    server = Server.started()
    for claim, count in (("a", 1), ("b", 4), ("c", 1)):
        server.claim(claim)
        for number in range(count):
            server.pod(f"{claim}-{number}", claim=claim)
    claims = await claims_of(server, "a", "b", "c")
    chunks = [
        [(claim.metadata.name, len(pods.of(claim))) for claim in chunk]
        async for chunk, pods in with_pods(server.client, claims, kept=2)
    ]
    assert chunks == [[("a", 1)], [("b", 4)], [("c", 1)]]


async def test_unreadable_pods_are_handed_on() -> None:
    server = Server.with_unreadable("pods", "bad")
    server.claim()
    server.pod("bad")
    (claim,) = await claims_of(server, "slice")
    pods = await list_pods_of(server.client, [claim])
    assert [each.name for each in pods.unreadable] == ["bad"]
    assert names(pods, claim) == []


async def test_an_expired_page_token_starts_over_and_no_pod_counts_twice() -> None:
    server = Server.started()
    server.claim()
    for number in range(501):
        server.pod(f"p-{number}")
    (claim,) = await claims_of(server, "slice")
    expired = Fault(status=410, reason="Expired", message="the token is too old")
    server.upon("list", "pods", lambda number: expired if number == 2 else None)
    pods = await list_pods_of(server.client, [claim])
    assert len(names(pods, claim)) == 501
