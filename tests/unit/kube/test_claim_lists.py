"""List writes, on an API server whose entries have a field that claimctl does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest
from kube_in_process.schema import alpha
from kube_in_process.schema.builtin import builtin_schemas

from claimctl.controller.writer import Writer
from claimctl.downgrade.plan_run import write_list
from claimctl.kube.claim_lists import change_list, changes, without_finalizer
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.references import uids_written_by
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.base import to_plain
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import NOW, deployment_ref, pod_ref, tomb
from tests.support.claim_server import NAMESPACE, Server
from tests.support.hand_clock import HandClock

VM = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="vm-1")
HOLD, A, B = deployment_ref(), pod_ref("a"), pod_ref("b")
NOTE = "a field of a later version"


@pytest.fixture(autouse=True)
def _later_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    added = {"V1ResourceClaimConsumerReference": {"note": ("str", "")}}
    monkeypatch.setattr(alpha, "RESERVED_FOR_FIELDS", {**alpha.RESERVED_FOR_FIELDS, **added})
    builtin_schemas.cache_clear()
    yield
    builtin_schemas.cache_clear()


async def listed(made: Server, *references: Reference) -> ResourceClaim:
    """The claim after another client has written this list."""
    made.write_list(*({**to_plain(each), "note": NOTE} for each in references))
    return await made.client.get(RESOURCECLAIMS, "slice", NAMESPACE)


def entries(made: Server) -> list[dict[str, Any]]:
    status = made.admin.get("resourceclaims", NAMESPACE, "slice").get("status", {})
    return list(status.get("reservedFor", ()))


def some(rng: Random) -> tuple[Reference, ...]:
    """A list with at most one entry of each UID."""
    drawn = rng.sample((VM, HOLD, A, B, tomb("a"), tomb("b")), rng.randint(1, 6))
    return tuple({each.uid: each for each in drawn}.values())


@pytest.mark.parametrize("seed", range(25))
async def test_the_list_is_as_wanted_and_entries_that_stay_are_as_they_were(seed: int) -> None:
    rng, made = Random(seed), Server.started()
    made.claim()
    present, wanted = some(rng), some(rng)
    claim = await listed(made, *present)
    before = {each["uid"]: each for each in entries(made)}
    written = await change_list(made.client, RESOURCECLAIMS, claim, wanted)
    assert written.status.reserved_for == wanted
    stay = {each.uid for each in wanted if each in present}
    assert [each for each in entries(made) if each["uid"] in stay] == [
        before[each.uid] for each in wanted if each.uid in stay
    ]
    assert uids_written_by(written, "claimctl") == {each.uid for each in wanted} - stay


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        (
            (VM, A, B),
            (VM, tomb("a"), HOLD),
            ["remove /2", "add /1/apiGroup", "add /1/resource", "add /2 d"],
        ),
        ((VM, A, B), (A, VM, B), ["move /1 /0"]),
        ((VM, A, B), (B,), ["remove /1", "remove /0"]),
        ((VM,), (HOLD,), ["remove /0", "add /0 d"]),
        ((), (VM, A), ["add "]),
        ((VM, A), (), ["remove "]),
        ((VM, A), (VM, A), []),
        ((), (), []),
    ],
)
def test_entries_that_stay_are_not_sent(
    before: tuple[Reference, ...], after: tuple[Reference, ...], operations: list[str]
) -> None:
    lists = ({each.uid: to_plain(each) for each in listed} for listed in (before, after))
    shown = []
    for each in changes("/l", *lists):
        where = [each[key].removeprefix("/l") for key in ("from", "path") if key in each]
        value = each.get("value")
        entry = [value["uid"]] if isinstance(value, dict) else []
        shown.append(" ".join([each["op"], *where, *entry]))
    assert shown == [each.replace(" d", f" {HOLD.uid}") for each in operations]


async def by_controller(client: Client, claim: ResourceClaim, wanted: Iterable[Reference]) -> None:
    write = WriteList(claim.metadata.resource_version, tuple(wanted))
    await Writer(client, HandClock()).apply(Snapshot(NOW, NAMESPACE, "slice", claim), write)


Way = Callable[[Client, ResourceClaim, Iterable[Reference]], Awaitable[None]]


@pytest.mark.parametrize("way", [by_controller, write_list])
async def test_every_writer_leaves_the_entries_of_others_as_they_are(way: Way) -> None:
    made = Server.started()
    made.claim()
    (theirs,) = (to_plain(VM) | {"note": NOTE},)
    for present, wanted in (((VM,), (VM, HOLD, A)), ((VM, HOLD, A), (VM, tomb("a")))):
        claim = await listed(made, *present)
        await way(made.client, claim, wanted)
        assert entries(made)[0] == theirs
        assert len(entries(made)) == len(wanted)
        with pytest.raises(Conflict):
            await way(made.client, claim, (VM,))


async def test_a_write_that_compares_the_list_is_refused() -> None:
    made = Server.started()
    made.claim()
    claim = await listed(made, VM, A)
    write = WriteList("", (VM, tomb("a")), present=(VM, A))
    with pytest.raises(Conflict):
        await Writer(made.client, HandClock()).apply(
            Snapshot(NOW, NAMESPACE, "slice", claim), write
        )
    assert [each["note"] for each in entries(made)] == [NOTE, NOTE]


async def test_a_deallocation_removes_everything_in_one_write() -> None:
    made = Server.started()
    made.claim()
    claim = await listed(made, HOLD, A)
    before = made.handler.api.store.revision
    written = await change_list(made.client, RESOURCECLAIMS, claim, (), deallocate=True)
    assert (written.status.allocation, written.status.reserved_for) == (None, ())
    assert made.handler.api.store.revision == before + 1


@pytest.mark.parametrize(
    ("present", "left"),
    [
        (("a.io/x", CLAIM_FINALIZER, "b.io/y"), ["a.io/x", "b.io/y"]),
        ((CLAIM_FINALIZER,), []),
        (("a.io/x",), ["a.io/x"]),
    ],
)
async def test_only_one_finalizer_goes(present: tuple[str, ...], left: list[str]) -> None:
    made = Server.started()
    made.claim()
    meta = {"metadata": {"finalizers": list(present)}}
    made.admin.patch("resourceclaims", NAMESPACE, "slice", meta)
    claim = await made.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    patch = without_finalizer(claim.metadata)
    await made.client.json_patch(RESOURCECLAIMS, claim.metadata, patch)
    on = made.admin.get("resourceclaims", NAMESPACE, "slice")
    assert on["metadata"].get("finalizers", []) == left
