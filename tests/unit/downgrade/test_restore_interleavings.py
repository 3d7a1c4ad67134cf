"""Another client writes at every point of a way back, and the way back is cut off there.

What has to hold: claimctl removes nothing; it adds only references of the plan's record, once; and
no reference is lost: it is listed, or on record, or was in the list until another client removed
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest
from kube_in_process.storage.store import Address, Author, Revision

from claimctl.downgrade import plans
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from tests.support.claim_server import NAMESPACE, TRAIN, Server
from tests.unit.downgrade.writers import (
    DEEDS,
    US,
    Deed,
    Scene,
    TwoProcesses,
    attempt,
    removed,
)

_POD = {"containers": [{"name": "main", "image": "x"}]}


def _workload(uid: str) -> dict[str, object]:
    labels = {"app": "train"}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "train", "namespace": NAMESPACE, "uid": uid, "generation": 1},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _POD},
        },
    }


def _put_workload(server: Server, uid: str = TRAIN["uid"]) -> None:
    address = Address("apps", "deployments", NAMESPACE, "train")
    server.handler.api.store.put(address, _workload(uid), Author("user", "create"))


def _delete_workload(server: Server) -> None:
    server.admin.delete("deployments", NAMESPACE, "train")


def _end_pods(server: Server) -> None:
    for name in ("a", "b"):
        server.admin.patch("pods", NAMESPACE, name, {"status": {"phase": "Failed"}}, "status")


def _prepare_again(server: Server) -> None:
    server.admin.patch("downgradeplans", "", "claimctl", {"spec": {"action": "Prepare"}})


BACK: Mapping[str, Deed] = {
    **DEEDS,
    "deletes the workload": _delete_workload,
    "recreates the workload": partial(_put_workload, uid="d-2"),
    "ends the pods": _end_pods,
    "asks for a preparation again": _prepare_again,
}


MEANWHILE = (
    "puts the workload back",
    "makes the claim anew",
    "deletes the workload",
    "recreates the workload",
    "asks for a preparation again",
)
"""What happens between a way back that was cut off and the next one."""


@dataclass
class WayBack(Scene):
    """A prepared claim of a Deployment that exists."""

    since: int = 0
    """The revision at which the way back begins."""
    claim: str = ""
    """The UID of the prepared claim."""
    added: set[str] = field(default_factory=set)

    @classmethod
    async def begun(cls) -> WayBack:
        laid = await Scene.laid()
        _put_workload(laid.server)
        await laid.carry_out(laid.gate())
        made = cls(laid.server, since=laid.server.handler.api.store.revision)
        made.claim = made.server.admin.get("resourceclaims", NAMESPACE, "slice")["metadata"]["uid"]
        assert made.server.listed() == ["pods/a", "pods/b"]
        await plans.begin_restore(made.server.client, None)
        return made

    async def again(self) -> None:
        """Ask for another way back, which no client disturbs."""
        if await plans.begin_restore(self.server.client, None) is not None:
            await self.carry_out(self.gate())

    def judge(self, *, prepares: bool = False) -> None:
        """Check every write of claimctl.

        Args:
            prepares: the plan asked for a preparation meanwhile, so references may go again.
        """
        for revision in self.revisions():
            if revision.number <= self.since or revision.actor != US:
                continue
            if revision.plural == "resourceclaims":
                self._judge_write(revision, prepares=prepares)

    def _judge_write(self, revision: Revision, *, prepares: bool) -> None:
        assert revision.previous is not None
        assert prepares or removed(revision) == []
        before = decode(revision.previous, ResourceClaim)
        after = decode(revision.data, ResourceClaim)
        uids = [each.uid for each in after.status.reserved_for]
        assert len(uids) == len(set(uids)), uids
        new = set(uids) - {each.uid for each in before.status.reserved_for}
        pods = {each.uid for each in after.status.reserved_for if each.resource == "pods"}
        assert prepares or new <= {TRAIN["uid"]}, new
        self.added |= new - pods

    def end_back(self) -> None:
        """Check that no reference was lost."""
        claim = self.server.admin.find("resourceclaims", NAMESPACE, "slice")
        plan = self.server.admin.find("downgradeplans", "", "claimctl")
        if claim is None or plan is None or claim["metadata"]["uid"] != self.claim:
            return
        record = self.record()
        on_record = {each.uid for each in record.replaced_references} if record else set()
        listed = {each["uid"] for each in claim["status"].get("reservedFor") or ()}
        assert TRAIN["uid"] in listed | on_record | self.added, record
        assert plan["status"]["done"] == plan["status"]["total"]


_requests: list[int] = []


async def requests_of_the_way_back() -> int:
    """How many requests it takes when nobody disturbs."""
    if not _requests:
        _requests.append(await _counted())
    return _requests[0]


async def _counted() -> int:
    played = await WayBack.begun()
    gate = played.gate()
    await played.carry_out(gate)
    played.judge()
    played.end_back()
    assert played.server.listed() == ["pods/a", "pods/b", "deployments/train"]
    return gate.requests


@pytest.mark.parametrize("deed", BACK)
async def test_another_client_writes_before_any_request(deed: str) -> None:
    prepares = deed == "asks for a preparation again"
    for at in range(1, await requests_of_the_way_back() + 1):
        played = await WayBack.begun()
        gate = played.gate()
        gate.at, gate.before = at, partial(attempt, BACK[deed], played.server)
        await played.carry_out(gate)
        played.judge(prepares=prepares)
        await played.again()
        played.judge(prepares=prepares)
        played.end_back()


@pytest.mark.parametrize("deed", ["does nothing", *MEANWHILE])
async def test_it_is_cut_off_at_any_request(deed: str) -> None:
    prepares = deed == "asks for a preparation again"
    for at in range(1, await requests_of_the_way_back() + 1):
        played = await WayBack.begun()
        gate = played.gate()
        gate.breaks_at = at
        await played.carry_out(gate)
        if deed in BACK:
            attempt(BACK[deed], played.server)
        await played.again()
        played.judge(prepares=prepares)
        played.end_back()


async def test_two_processes_carry_out_one_way_back() -> None:
    most = await requests_of_the_way_back()
    for first, second in product(range(1, most + 1), repeat=2):
        played = await WayBack.begun()
        turns = TwoProcesses(first, second, _nothing)
        await played.carry_out_twice(turns)
        played.judge()
        await played.again()
        played.judge()
        played.end_back()
        assert played.server.listed() == ["pods/a", "pods/b", "deployments/train"]


def _nothing() -> None:
    pass
