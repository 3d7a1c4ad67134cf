"""What one look at all claims reads, in which order, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.commands.orphans.model import Answer, OwnerState
from claimctl.commands.orphans.scan import ClaimScan, scan_claims
from claimctl.kube.errors import Forbidden
from tests.support.claim_server import NAMESPACE, Server

VM = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "v-1"}
RESERVE, POLICY = "claimctl.io/reserve", "claimctl.io/retention-policy"
Answers = Mapping[str, Answer]


async def look(server: Server, **options: Any) -> ClaimScan:
    return await scan_claims(server.client, server.clock, **options)


def states(seen: ClaimScan) -> list[OwnerState]:
    return [answer.state for scanned in seen.claims for answer in scanned.answers.values()]


async def test_claims_come_before_pods_and_reservations_last() -> None:
    server, order = Server.started(), list[str]()
    server.claim("slice", server.pod("a"))

    def note(point: FaultPoint) -> Fault | None:
        order.append(point.plural)
        return None

    server.handler.fault = note
    (scanned,) = (await look(server)).claims
    assert order == ["resourceclaims", "pods", "claimreservations"]
    assert scanned.live.claim_version == scanned.claim.metadata.resource_version
    assert [pod.metadata.name for pod in scanned.live.pods] == ["a"]


async def test_pods_that_name_other_claims_count_for_those_and_their_uids_for_all() -> None:
    server = Server.started(NAMESPACE, "other")
    server.claim("slice", VM)
    uid = server.pod("a", claim="another")["uid"]
    server.pod("b", claim="slice", namespace="other")
    (scanned,) = (await look(server)).claims
    assert scanned.live.pods == ()
    assert uid in scanned.live.uids


@pytest.mark.parametrize("crds", [True, False])
async def test_a_kind_that_nobody_serves_is_told_so(*, crds: bool) -> None:
    server = Server.started(crds=crds)
    server.claim("slice", VM)
    seen = await look(server)
    assert (states(seen), seen.reservations) == ([OwnerState.UNKNOWN_KIND], ())


@pytest.mark.parametrize(
    ("annotations", "state"),
    [
        ({}, OwnerState.ALIVE),
        ({RESERVE: "*"}, OwnerState.RESERVING),
        ({RESERVE: "slice"}, OwnerState.RESERVING),
        ({RESERVE: "other"}, OwnerState.ALIVE),
        ({RESERVE: "*", POLICY: "nonsense"}, OwnerState.ALIVE),
    ],
)
async def test_a_workload_whose_annotation_asks_for_the_claim_is_about_to_reserve_it(
    annotations: dict[str, str], state: OwnerState
) -> None:
    server = Server.started()
    server.claim("slice", server.deployment(annotations=annotations))
    assert states(await look(server)) == [state]


async def test_another_uid_under_the_name_is_another_object() -> None:
    server = Server.started()
    held = server.deployment(annotations={RESERVE: "*"})
    server.claim("slice", {**held, "uid": "of-before"})
    assert states(await look(server)) == [OwnerState.REPLACED]


async def test_a_question_that_is_refused_is_no_answer() -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden") if point.plural == "deployments" else None
    )
    ((answer,),) = [scanned.answers.values() for scanned in (await look(server)).claims]
    assert answer.state is OwnerState.UNKNOWN
    assert answer.note.startswith("GET /apis/apps/v1/namespaces/ml/deployments/train: 403")


async def test_where_reservations_may_not_be_read_nothing_is_taken_for_left_over() -> None:
    server = Server.started()
    server.claim("slice", VM)
    server.upon("list", "claimreservations", lambda _: Fault(status=403, reason="Forbidden"))
    with pytest.raises(Forbidden):
        await look(server)


async def test_a_page_that_expired_means_all_over_again() -> None:
    server = Server.started()
    for number in range(501):
        server.claim(f"c{number}", VM)
    asked: list[int] = []

    def expire(number: int) -> Fault | None:
        asked.append(number)
        return Fault(status=410, reason="Expired") if number == 2 else None

    server.upon("list", "resourceclaims", expire)
    seen = await look(server)
    assert (len(asked), len(seen.claims)) == (3, 501)
