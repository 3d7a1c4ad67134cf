"""Everybody who writes while a plan is carried out, and what has to be true of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from kube_in_process.errors import StatusError
from kube_in_process.storage.requests import MASTERS, Actor
from kube_in_process.storage.store import Revision

from claimctl.downgrade import plans
from claimctl.downgrade.carry_out import carry_out
from claimctl.kube.client import Client
from claimctl.kube.errors import Unreachable
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.base import decode, encode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import (
    DOWNGRADE_PLAN_NAME,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanSpec,
)
from claimctl.wire.seams import Query, Response, Transport
from claimctl_witness.witness import Witness
from claimctl_witness.world import World
from tests.support.claim_server import NAMESPACE, TRAIN, Server

US = "claimctl"
THING = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
OTHER = {**THING, "name": "y", "uid": "y"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "g"}
RULES = Rules(dialect="native")
PATIENCE_SECONDS = 1200.0
Deed = Callable[[Server], object]


# -- somebody else


def _write(server: Server, change: Callable[[list[dict[str, str]]], list[dict[str, str]]]) -> None:
    claim = server.admin.get("resourceclaims", NAMESPACE, "slice")
    listed = change(list(claim["status"].get("reservedFor") or ()))
    server.write_list(*listed)


def _without(name: str) -> Deed:
    return lambda server: _write(
        server, lambda listed: [each for each in listed if each["name"] != name]
    )


def _swap(server: Server) -> None:
    _write(server, lambda listed: [THING, *(each for each in listed if each != TRAIN)])


def _remake(server: Server) -> None:
    """The same name, and another claim."""
    server.admin.delete("resourceclaims", NAMESPACE, "slice")
    server.claim("slice", TRAIN, THING)


def _guest(server: Server) -> None:
    """A pod is listed that lives and does not name the claim."""
    spec = {"containers": [{"name": "main", "image": "x"}]}
    body = {"metadata": {"name": "guest", "namespace": NAMESPACE}, "spec": spec}
    uid = server.admin.create("pods", body)["metadata"]["uid"]
    guest = {"resource": "pods", "name": "guest", "uid": uid}
    _write(server, lambda listed: [*listed, guest])


def _label(plural: str, space: str, name: str) -> Deed:
    patch = {"metadata": {"labels": {"seen": "yes"}}}

    def deed(server: Server) -> None:
        server.admin.patch(plural, space, name, patch)

    return deed


def _lose_pod(server: Server) -> None:
    server.admin.patch("pods", NAMESPACE, "a", {"status": {"phase": "Failed"}}, "status")
    server.admin.delete("pods", NAMESPACE, "a")


def _end_plan(server: Server) -> None:
    server.admin.delete("downgradeplans", "", "claimctl")


DEEDS: Mapping[str, Deed] = {
    "adds a hold": lambda server: _write(server, lambda listed: [*listed, THING]),
    "adds two holds": lambda server: _write(server, lambda listed: [THING, *listed, OTHER]),
    "adds a PodGroup": lambda server: _write(server, lambda listed: [*listed, GROUP]),
    "puts the workload back": lambda server: _write(
        server, lambda listed: [*(each for each in listed if each != TRAIN), TRAIN]
    ),
    "removes the workload": _without("train"),
    "removes a pod": _without("a"),
    "swaps the workload for a hold": _swap,
    "reorders": lambda server: _write(server, lambda listed: listed[::-1]),
    "lists another's pod": _guest,
    "makes the claim anew": _remake,
    "deletes the claim": lambda server: server.admin.delete("resourceclaims", NAMESPACE, "slice"),
    "labels the claim": _label("resourceclaims", NAMESPACE, "slice"),
    "labels the plan": _label("downgradeplans", "", "claimctl"),
    "deletes the plan": _end_plan,
    "binds a pod": lambda server: server.pod("late"),
    "loses a pod": _lose_pod,
}


def attempt(deed: Deed, server: Server) -> None:
    """Do it; what is impossible just now does nothing."""
    try:
        deed(server)
    except StatusError:
        return


# -- claimctl


@dataclass
class Gate:
    """A connection on which something happens before one request, or that breaks there.

    Attributes:
        at: the number of the request, from 1.
        before: called just before that request is served.
        breaks_at: the number of the request that is the last one to arrive. Its answer is lost. To
            break before a request leaves the same as to break at the one before it.
        turn: awaited before every request.
    """

    inner: Transport
    at: int = 0
    before: Callable[[], None] = lambda: None
    breaks_at: int = 0
    turn: Callable[[int], asyncio.Event] | None = None
    requests: int = 0
    dead: bool = False

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.dead:
            raise ConnectionResetError("the process is gone")
        self.requests += 1
        if self.turn is not None:
            await self.turn(self.requests).wait()
        if self.requests == self.at:
            self.before()
        self.dead = self.requests == self.breaks_at
        response = await self.inner.send(method, path, query, headers, body)
        if self.dead:
            raise ConnectionResetError("the process is gone")
        return response


@dataclass
class Scene:
    """A claim of somebody else's Deployment, two pods on it, a plan, and who writes."""

    server: Server
    taken: set[tuple[str, str]] = field(default_factory=set)
    """By the claim's UID and its own: every reference that claimctl took out."""

    @classmethod
    async def laid(cls, *, shared: bool = True, listed: tuple[dict[str, str], ...] = ()) -> Scene:
        server = Server.started()
        server.claim("slice", TRAIN, shared=shared)
        pods = [server.pod("a"), server.pod("b")]
        if not shared:
            server.write_list(TRAIN, *pods, *listed)
        elif listed:
            server.write_list(TRAIN, *listed)
        await server.plan()
        return cls(server)

    def gate(self) -> Gate:
        return Gate(self.server.handler.transport(Actor(US, (MASTERS,))))

    async def carry_out_twice(self, turns: TwoProcesses) -> None:
        """Carry the plan out by two processes that take turns."""
        one, two = self.gate(), self.gate()
        one.turn, two.turn = turns.turn_of_one, turns.turn_of_two
        await asyncio.gather(
            _then(self.carry_out(one), turns.one_ended),
            _then(self.carry_out(two), turns.two_ended),
        )

    async def carry_out(self, gate: Gate) -> None:
        """As a controller does, until the plan is carried out or the connection breaks."""
        # a process that is stopped between two requests waits for no answer
        client = Client(gate, self.server.clock, rng=Random(0), timeout_seconds=PATIENCE_SECONDS)
        with suppress(Unreachable):
            await carry_out(client, DOWNGRADE_PLAN_NAME, self.server.clock, RULES)

    async def again(self) -> None:
        """As an administrator would: ask for another run, and nobody disturbs it."""
        if await plans.find(self.server.client):
            await plans.begin(self.server.client, DowngradePlanSpec())
            await self.carry_out(self.gate())

    def revisions(self) -> Iterator[Revision]:
        return self.server.handler.api.store.history()

    def record(self) -> DowngradedClaim | None:
        """What the plan has to say of the claim that is there."""
        plan = self.server.admin.find("downgradeplans", "", "claimctl")
        claim = self.server.admin.find("resourceclaims", NAMESPACE, "slice")
        claims = (plan or {}).get("status", {}).get("claims") or []
        found = [one for one in claims if claim and one["uid"] == claim["metadata"]["uid"]]
        return _record(found[0]) if found else None

    # -- the judgement

    def judge(self) -> None:
        """No promise was broken, and all that went was on record when it went."""
        witness, world = Witness({US}), World()
        world.listen(witness.notice)
        world.read(self.revisions())
        assert witness.violations == [], witness.violations
        assert not (found := list(self.unrecorded())), found

    def unrecorded(self) -> Iterator[str]:
        """Whatever claimctl took out, but for pods, that its plan did not tell of before."""
        plan = DowngradePlan()
        for revision in self.revisions():
            if revision.plural == "downgradeplans" and revision.type != "DELETED":
                plan = decode(revision.data, DowngradePlan)
            if revision.plural == "resourceclaims" and revision.actor == US:
                told = set(_told(plan, revision))
                for reference in removed(revision):
                    self.taken.add(
                        (decode(revision.data, ResourceClaim).metadata.uid, reference.uid)
                    )
                    if reference.uid not in told:
                        yield f"{revision.number}: {reference.name}"

    def end(self, *, doubt: bool = False) -> None:
        """What has to hold when everybody has finished.

        Args:
            doubt: a write may have been lost, so that more may be on record than was taken.
        """
        record = self.record()
        if record is None:
            return
        listed = self.server.listed()
        replaced = {reference.uid for reference in record.replaced_references}
        if {"things/x", "things/y"} & set(listed):
            assert (record.state, record.reason) == ("Refused", "UnknownReference"), record
        else:
            assert record.state == "Expanded", record
            assert all(each.startswith("pods/") for each in listed), listed
            assert set(self._living()) <= set(listed), listed
        assert not replaced & {"x", "y"}, record
        taken = {uid for claim, uid in self.taken if claim == record.uid}
        assert taken - self._uids() <= replaced, (taken, record)
        assert doubt or replaced <= taken, (taken, record)

    def _living(self) -> Iterator[str]:
        for name in ("a", "b"):
            if self.server.admin.find("pods", NAMESPACE, name):
                yield f"pods/{name}"

    def _uids(self) -> set[str]:
        claim = self.server.admin.get("resourceclaims", NAMESPACE, "slice")
        return {each["uid"] for each in claim["status"].get("reservedFor") or ()}


def _record(body: object) -> DowngradedClaim:
    return decode(encode(body), DowngradedClaim)


def _told(plan: DowngradePlan, revision: Revision) -> Iterator[str]:
    assert revision.previous is not None
    meta = decode(revision.previous, ResourceClaim).metadata
    for record in plan.status.claims:
        if (record.uid, record.resource_version) == (meta.uid, meta.resource_version):
            yield from (reference.uid for reference in record.replaced_references)


def removed(revision: Revision) -> list[Reference]:
    """What is neither a pod nor in the list any more."""
    assert revision.previous is not None
    before = decode(revision.previous, ResourceClaim).status.reserved_for
    after = {each.uid for each in decode(revision.data, ResourceClaim).status.reserved_for}
    return [each for each in before if each.uid not in after and each.resource != "pods"]


class TwoProcesses:
    """Two processes take turns: the first makes ``first`` requests, then the other ``second``, then
    the first goes on to its end, and the other last."""

    def __init__(self, first: int, second: int, between: Callable[[], None]) -> None:
        self.first, self.second, self.between = first, second, between
        self.one, self.two, self.one_again = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.two_again = asyncio.Event()
        self.one.set()

    def turn_of_one(self, number: int) -> asyncio.Event:
        if number <= self.first:
            return self.one
        self._pass_on(self.two)
        return self.one_again

    def turn_of_two(self, number: int) -> asyncio.Event:
        if number <= self.second:
            return self.two
        self._pass_on(self.one_again)
        return self.two_again

    def _pass_on(self, to: asyncio.Event) -> None:
        if not to.is_set():
            self.between()
            to.set()

    def one_ended(self) -> None:
        self.two.set()
        self.two_again.set()

    def two_ended(self) -> None:
        self.one_again.set()


async def _then(work: Awaitable[None], ended: Callable[[], None]) -> None:
    await work
    ended()
