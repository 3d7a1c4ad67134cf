"""The end of a schedule: what it waits for, and how it brings the wait to an end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest
from kube_in_process.real.client import Version
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.storage.store import Address, Author, Revision, Store
from kube_in_process.virtual import run

from claimctl.kube.errors import Conflict
from claimctl_demo.documents import DocumentClient
from labs.findings import RunFindings
from labs.torture.bodies import Bodies
from labs.torture.final_checks import MADE, FinalChecks
from labs.torture.place import Patience, TorturePlace

GRACE, CIRCLES, RELEASE = 12, 3, 150.0
USER = "claimctl"


class ReservationsAlone(TorturePlace):
    """The ClaimReservations of one namespace. It is its own client."""

    patience = Patience(
        pods=30.0, release=RELEASE, still=12.0, quiet=15.0, watched=10.0, rounds=3, circles=CIRCLES
    )
    lost: Collection[str] = ()

    def __init__(self) -> None:
        bodies = Bodies("team", Fleet((1, 36), count=0), GRACE)
        super().__init__(cast(DocumentClient, self), bodies, pod_groups=False, writer=USER)
        self.reservations: dict[str, dict[str, Any]] = {}
        self.pods: list[dict[str, Any]] = []
        self.deleted: list[tuple[str, str, Any]] = []
        self.claims: list[dict[str, Any]] = []
        self.changed: list[str] = []
        self.revisions: list[Revision] = []
        self.rules: list[dict[str, Any]] = []
        self.conflicts = 0
        """How many status writes are answered with a conflict."""

    def reserve(self, name: str, grace: int | None) -> None:
        spec = {"forceDeletedPodGraceSeconds": grace} if grace is not None else {}
        self.reservations[name] = {"metadata": {"name": name}, "spec": spec}

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @property
    def revision(self) -> int:
        return len(self.revisions)

    def written(self, since: int = 0) -> list[Revision]:
        return [revision for revision in self.revisions if revision.number > since]

    async def calm(self) -> None:
        """There are no faults."""

    async def leave(self) -> list[str]:
        return []

    def lose(self, node: str) -> None:
        raise NotImplementedError

    async def restore(self, node: str, *, rebooted: bool) -> None:
        raise NotImplementedError

    async def taint_rules(self) -> list[dict[str, Any]]:
        return self.rules

    async def slices(self) -> list[dict[str, Any]]:
        return []

    def objects(self, plural: str) -> list[dict[str, Any]]:
        kept = {"claimreservations": list(self.reservations.values()), "pods": self.pods}
        kept["resourceclaims"] = self.claims
        return kept.get(plural, [])

    async def patch(self, kind: Version, space: str, name: str, patch: dict[str, Any]) -> None:
        if kind[1] == "ResourceClaim":
            self.changed.append(name)
        else:
            self.reservations[name]["spec"] |= patch["spec"]

    async def get(self, kind: Version, space: str, name: str) -> dict[str, Any]:
        return next(claim for claim in self.claims if claim["metadata"]["name"] == name)

    async def put_status(self, claim: dict[str, Any], status: dict[str, Any]) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("PUT", "", status=409, message="the object has been modified")
        claim["status"] = status
        self.changed.append(claim["metadata"]["name"])

    async def delete(
        self, kind: Version, space: str, name: str, options: dict[str, Any] | None = None
    ) -> None:
        self.deleted.append((kind[1], name, options))

    def waits(self) -> list[str]:
        """ClaimReservations that wait for longer than a schedule lasts."""
        return [
            name
            for name, reservation in self.reservations.items()
            if reservation["spec"].get("forceDeletedPodGraceSeconds", 300) > GRACE
        ]


class Circle(ReservationsAlone):
    """A device evicts its pods beside a hold, and a workload makes new ones, for some rounds."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.rules = [{}]

    @property
    def revision(self) -> int:
        """The last revision. Another round begins when it is asked for."""
        last = len(self.revisions)
        if self.rounds:
            self.rounds -= 1
            store = Store(lambda: 0.0)
            hold = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "u"}
            for number in range(last + MADE + 1):
                pod = {"metadata": {"name": f"p{number}", "namespace": "team"}}
                store.put(Address("", "pods", "team", f"p{number}"), pod, Author("kcm", "create"))
            meta = {"name": "slice", "namespace": "team"}
            claim = {"metadata": meta, "status": {"reservedFor": [hold]}}
            where = Address("resource.k8s.io", "resourceclaims", "team", "slice")
            store.put(where, claim, Author(USER, "create"))
            self.revisions = list(store.history())
        return last


def _checks(cluster: ReservationsAlone) -> FinalChecks:
    return FinalChecks(cluster, RunFindings("SEED=1"))


@pytest.mark.virtual_limit(2 * RELEASE)
async def test_a_reservation_that_an_annotation_makes_late_has_the_grace_of_the_schedule() -> None:
    cluster = ReservationsAlone()
    checks = _checks(cluster)

    async def later() -> None:
        await asyncio.sleep(25.0)
        cluster.reserve("late", 300)

    cluster.reserve("there", None)
    task = asyncio.create_task(later())
    await checks.released(lambda: [*cluster.waits(), *(() if task.done() else ("busy",))])
    assert checks.verdict.good
    assert set(cluster.reservations) == {"there", "late"}
    assert not cluster.waits()


def test_the_foreign_writer_takes_its_entries_back_beside_somebody_who_writes_in_a_loop() -> None:
    cluster = ReservationsAlone()
    listed = [{"resource": "pods"}, {"apiGroup": "example.com", "resource": "things"}]
    claim = {"metadata": {"name": "slice"}, "status": {"reservedFor": listed}}
    cluster.claims, cluster.conflicts = [claim], 5
    run(_checks(cluster).calm(), limit=60)
    assert claim["status"] == {"reservedFor": [{"resource": "pods"}]}


def test_the_foreign_writer_that_frees_a_claim_leaves_nothing_of_it() -> None:
    cluster = ReservationsAlone()
    listed = [{"apiGroup": "example.com", "resource": "things"}]
    claim = {"metadata": {"name": "slice"}, "status": {"reservedFor": listed, "allocation": {}}}
    cluster.claims = [claim]
    run(_checks(cluster).calm(), limit=60)
    assert claim["status"] == {}
    # the status, and then the finalizer
    assert cluster.changed == ["slice", "slice"]


@pytest.mark.parametrize(("rounds", "stuck"), [(1, 0), (CIRCLES, 1)])
def test_pods_that_are_made_beside_a_hold_for_a_while_are_no_circle(
    rounds: int, stuck: int
) -> None:
    """So it is while claimctl starts."""
    cluster = Circle(rounds)
    checks = _checks(cluster)
    run(checks.in_no_circle(), limit=120)
    assert len(checks.verdict.stuck) == stuck


def test_what_stays_is_a_leak() -> None:
    checks = _checks(ReservationsAlone())
    run(checks.released(lambda: ["claim slice is allocated"]), limit=2 * RELEASE)
    assert checks.verdict.leaks == ["claim slice is allocated"]


def test_pods_that_go_by_force_leave_nobody_time_to_stop_their_containers() -> None:
    cluster = ReservationsAlone()
    cluster.pods = [{"metadata": {"name": name}} for name in ("b", "a")]
    run(_checks(cluster).strike_out(), limit=60)
    now = {"gracePeriodSeconds": 0}
    assert cluster.deleted == [("Pod", "a", now), ("Pod", "b", now)]


def test_only_claims_that_claimctl_never_wrote_and_nobody_reserved_are_counted_apart() -> None:
    cluster, store = ReservationsAlone(), Store(lambda: 0.0)
    for name, actor in (("theirs", "kube-scheduler"), ("ours", USER), ("reserved", "kcm")):
        meta = {"name": name, "namespace": "team", "deletionTimestamp": "now"}
        claim = {"metadata": meta, "status": {"allocation": {"devices": {}}}}
        cluster.claims.append(claim)
        store.put(
            Address("resource.k8s.io", "resourceclaims", "team", name),
            claim,
            Author(actor, "update"),
        )
    where = Address("claimctl.io", "claimreservations", "team", "r")
    spec = {"resourceClaimName": "reserved"}
    reservation = {"metadata": {"name": "r", "namespace": "team"}, "spec": spec}
    store.put(where, reservation, Author("people", "create"))
    cluster.revisions = list(store.history())
    checks = _checks(cluster)
    known = checks._known()
    run(checks.strip_strangers(known), limit=2 * RELEASE)
    assert set(cluster.changed) == {"theirs"}
    assert checks.verdict.others == ["claim theirs is left, deleted and allocated"]
    assert [text.split()[1] for text in checks._unreleased(known)] == ["ours", "reserved"]
