"""One try to write a claim's list: what is recorded before it, and what each answer leads to."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.downgrade.expander import Attempt, Expander
from claimctl.downgrade.expansion import claims_under
from claimctl.downgrade.records import announced
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanSpec
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, TRAIN, Server
from tests.unit.downgrade.live_pods import list_pods_of

UPGRADE = DowngradePlanSpec(upgrade_to="1.37")
VM = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "v-1"}


@dataclass
class Expanding:
    """A claim that a Deployment holds and a pod uses, and the records that were stored."""

    server: Server
    stored: list[DowngradedClaim] = field(default_factory=list)
    lists: list[list[str]] = field(default_factory=list)
    """The claim's list when a record was stored."""

    @classmethod
    def of(cls, *references: dict[str, str], pods: tuple[str, ...] = ("a",)) -> Expanding:
        server = Server.started()
        server.claim("slice", *references)
        for each in pods:
            server.pod(each)
        return cls(server)

    async def expand(self, record: DowngradedClaim | None = None) -> DowngradedClaim:
        """The record after a try that needs no second one."""
        attempt = await self.attempt(record)
        assert not attempt.again
        return attempt.record

    async def attempt(self, record: DowngradedClaim | None = None) -> Attempt:
        client = self.server.client
        claim = await client.get(RESOURCECLAIMS, "slice", NAMESPACE)
        pods = await list_pods_of(client, [claim])
        uid = claim.metadata.uid
        begun = record or DowngradedClaim(namespace=NAMESPACE, name="slice", uid=uid)
        return await Expander(client, self.server.clock, self.store).expand(begun, claim, pods)

    async def store(self, record: DowngradedClaim) -> None:
        self.stored.append(record)
        self.lists.append(self.server.listed())


def replaced(record: DowngradedClaim) -> list[str]:
    return [each.name for each in record.replaced_references]


async def test_the_record_is_stored_before_the_list_is_written() -> None:
    on = Expanding.of()
    version = on.server.version()
    record = await on.expand()
    (stored,) = on.stored
    assert (stored.state, stored.resource_version, replaced(stored)) == (
        "Pending",
        version,
        ["train"],
    )
    assert on.lists == [["deployments/train"]]
    assert on.server.listed() == ["pods/a"]
    assert (record.state, record.pods, replaced(record)) == ("Expanded", 1, ["train"])


async def test_a_record_that_is_stored_already_is_not_stored_again() -> None:
    """The process ended between the record and the write."""
    on = Expanding.of()
    claim = await on.server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    begun = DowngradedClaim(namespace=NAMESPACE, name="slice", uid=claim.metadata.uid)
    record = await on.expand(announced(begun, claim))
    assert (record.state, replaced(record)) == ("Expanded", ["train"])
    assert on.stored == []


async def test_a_claim_that_needs_no_write_gets_none() -> None:
    on = Expanding.of()
    expanded = await on.expand()
    version = on.server.version()
    assert (await on.expand(expanded)).state == "Expanded"
    assert on.server.version() == version
    assert len(on.stored) == 1


async def test_a_refusal_stores_nothing_and_says_why() -> None:
    on = Expanding.of(TRAIN, VM)
    record = await on.expand()
    assert (record.state, record.reason) == ("Refused", "UnknownReference")
    assert on.stored == []
    assert on.server.listed() == ["deployments/train", "vms/vm"]


async def test_after_a_conflict_the_claim_has_to_be_read_again_and_nothing_was_replaced() -> None:
    on = Expanding.of()
    on.server.upon("patch", "resourceclaims", lambda _: Fault(status=409, reason="Conflict"))
    attempt = await on.attempt()
    assert (attempt.again, replaced(attempt.record), attempt.record.resource_version) == (
        True,
        [],
        "",
    )
    assert on.server.listed() == ["deployments/train"]


async def test_a_conflict_keeps_what_an_earlier_write_may_have_replaced() -> None:
    on = Expanding.of()
    claim = await on.server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    begun = DowngradedClaim(namespace=NAMESPACE, name="slice", uid=claim.metadata.uid)
    pods = await list_pods_of(on.server.client, [claim])
    on.server.upon("patch", "resourceclaims", lambda _: Fault(status=409, reason="Conflict"))
    expander = Expander(on.server.client, on.server.clock, on.store)
    attempt = await expander.expand(announced(begun, claim), claim, pods, {"d-1"})
    assert (attempt.uncertain, replaced(attempt.record)) == ({"d-1"}, ["train"])


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (422, "Invalid")])
async def test_a_write_that_is_refused_leaves_the_reference_in_place(
    status: int, reason: str
) -> None:
    on = Expanding.of()
    fault = Fault(status=status, reason=reason, message="no permission")
    on.server.upon("patch", "resourceclaims", lambda _: fault)
    record = await on.expand()
    assert "no permission" in record.message
    assert (record.state, record.reason, replaced(record)) == ("Failed", reason, [])


async def test_a_claim_that_nobody_can_change_is_named() -> None:
    server = Server.started()
    server.unchangeable(TRAIN)
    server.pod("a")
    record = await Expanding(server).expand()
    assert (record.state, replaced(record)) == ("Failed", [])
    assert UNCHANGEABLE in record.message


async def test_a_claim_that_is_gone_has_nothing_to_restore() -> None:
    on = Expanding.of()

    def vanish(number: int) -> Fault | None:
        on.server.admin.delete("resourceclaims", NAMESPACE, "slice")
        return None

    on.server.upon("patch", "resourceclaims", vanish)
    record = await on.expand()
    assert (record.state, replaced(record), record.resource_version) == ("Unchanged", [], "")


async def test_after_a_lost_answer_the_claim_has_to_be_read_and_its_references_stay_on_record() -> (
    None
):
    """The server may have carried it out: nothing else says what was removed."""
    on = Expanding.of()
    on.server.upon("patch", "resourceclaims", lambda _: Fault(hang=True))
    attempt = await on.attempt()
    assert (attempt.again, attempt.uncertain) == (True, {"d-1"})
    assert replaced(attempt.record) == ["train"]


GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-1"}


async def beside(on: Expanding) -> Attempt:
    """A try to list the pods beside the PodGroup, before an upgrade."""
    client = on.server.client
    claim = await client.get(claims_under(UPGRADE), "slice", NAMESPACE)
    pods = await list_pods_of(client, [claim])
    begun = DowngradedClaim(namespace=NAMESPACE, name="slice", uid=claim.metadata.uid)
    expander = Expander(client, on.server.clock, on.store)
    return await expander.list_beside_groups(begun, claim, pods)


async def test_pods_are_listed_beside_their_group_before_an_upgrade() -> None:
    on = Expanding.of(TRAIN, GROUP, pods=("a", "b"))
    attempt = await beside(on)
    assert on.server.listed() == ["deployments/train", "podgroups/g", "pods/a", "pods/b"]
    assert (attempt.again, attempt.record.state) == (True, "")
    assert not (await beside(on)).again


async def test_a_list_that_has_no_room_beside_the_group_is_left_as_it_is() -> None:
    """Without the group, the pods fit."""
    names = tuple(f"p{number}" for number in range(LIMIT - 1))
    on = Expanding.of(TRAIN, GROUP, pods=names)
    attempt = await beside(on)
    assert on.server.listed() == ["deployments/train", "podgroups/g"]
    assert (attempt.again, attempt.record.state) == (False, "")


async def test_too_many_pods_are_refused_before_anything_is_written() -> None:
    names = tuple(f"p{number}" for number in range(LIMIT))
    on = Expanding.of(TRAIN, GROUP, pods=names)
    attempt = await beside(on)
    assert on.server.listed() == ["deployments/train", "podgroups/g"]
    assert (attempt.record.state, attempt.record.reason) == ("Refused", "TooManyConsumers")


@pytest.mark.parametrize(
    ("fault", "again", "state"),
    [
        (Fault(status=409, reason="Conflict"), True, ""),
        (Fault(hang=True), True, ""),
        (Fault(status=404, reason="NotFound"), False, "Unchanged"),
        (Fault(status=403, reason="Forbidden"), False, "Failed"),
    ],
    ids=["changed", "no answer", "gone", "forbidden"],
)
async def test_a_list_that_cannot_be_written_beside_the_group(
    fault: Fault, again: bool, state: str
) -> None:
    on = Expanding.of(TRAIN, GROUP)
    on.server.upon("patch", "resourceclaims", lambda _: fault)
    attempt = await beside(on)
    assert (attempt.again, attempt.record.state) == (again, state)
