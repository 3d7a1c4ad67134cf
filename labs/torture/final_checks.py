"""The end of every schedule: faults stop, workloads get their pods, then everything is deleted.

Afterwards there must be no allocated claim, no finalizer, no reference, no ClaimReservation that
cannot be deleted, and no write by claimctl while all is quiet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from kube_in_process.real.client import Version
from kube_in_process.real.servers.pod_worker import POD
from kube_in_process.storage.store import Revision

from claimctl.wire.base import Object
from labs.findings import RunFindings
from labs.torture.blocked import ENDED, blocked
from labs.torture.bodies import API, REALLOCATE, RESERVATION
from labs.torture.place import TROUBLE, Patience, TorturePlace, tried
from labs.torture.stored import (
    PLURALS,
    has_ended,
    is_allocated,
    is_deleting,
    is_held,
    is_in_the_way,
    made_beside_a_hold,
    missing_pods,
    named_claims,
    reserved,
    without_foreign,
)
from tests.e2e.harness import CONTROLLER_USER

ROUNDS = 5
"""How many times users wait for pods. They help after each; a PodGroup goes in one of them, and its
claim is made anew in the next."""
EXPEL_TRIES = 50
"""How many times the foreign writer tries to remove its entries."""
STEP, LOOK = 1.0, 10.0
"""Seconds between two looks at a condition, and between two looks at new ClaimReservations."""
STARTED, WATCHED = 5.0, 10.0
"""Seconds until pods have begun to wait, and for which writes are counted."""
FEW, MADE, CIRCLES = 8, 16, 3
"""How many writes are no loop yet, how many new pods are no circle, and how often they may be made
before they are one."""
SHORT = 60.0
"""Seconds within which deleted objects go that nothing keeps."""
OWN_BUSINESS = frozenset({"leases", "events"})
FINALIZER = "resource.kubernetes.io/delete-protection"
WORKLOADS: dict[str, Version] = {
    **{PLURALS[kind]: (version, kind) for kind, version in API.items()},
    "replicasets": ("apps/v1", "ReplicaSet"),
}


@dataclass
class FinalChecks:
    """The end of one schedule."""

    place: TorturePlace
    verdict: RunFindings
    by_force: bool = False
    """Whether all pods are force-deleted at the end, while their containers run."""

    @property
    def patience(self) -> Patience:
        return self.place.patience

    async def conclude(self) -> None:
        """Bring the schedule to its end and record what did not come true."""
        await self.come_true(self._make_way)
        await self.released(self._kept)
        await self.clear_away()
        await self.remove_reservations()
        self.verdict.say("leaks", await self.place.leave())

    async def come_true(self, helps: Callable[[], Awaitable[None]]) -> None:
        """End the faults, and check that all pods run and nothing is written any more.

        Args:
            helps: what users do while pods do not run.
        """
        await self.calm()
        await self._unblocked()
        await self.in_no_circle()
        await self.place.mend()
        for _ in range(ROUNDS):
            # after a restore, a claim waits for the grace, also of a reservation that came since
            await self._shorten()
            if await self._until(lambda: not self._missing(), self.patience.pods):
                break
            await helps()
        else:
            self.verdict.say("stuck", [*self._missing(), *self._waiting()])
        await self._still()

    async def clear_away(self) -> None:
        """Delete the workloads, and check that their claims are released and nothing is written."""
        if self.by_force:
            await self.strike_out()
        known = self._known()
        await self._clear()
        await self.released(lambda: self._unreleased(known))
        await self.strip_strangers(known)
        await self._quiet()

    async def remove_reservations(self) -> None:
        """Delete the ClaimReservations, and check that they go."""
        for reservation in self._objects("claimreservations"):
            await self._delete(RESERVATION, reservation)
        if not await self._until(lambda: not self._objects("claimreservations"), SHORT):
            left = [body["metadata"]["name"] for body in self._objects("claimreservations")]
            self.verdict.say("leaks", [f"reservation {name} stays" for name in left])

    # -- all is well again

    async def calm(self) -> None:
        """End the faults, shorten times, remove foreign entries, and let drivers be quick.

        Nodes stay closed, and devices broken.
        """
        await self.place.calm()
        if self.place.driver is not None:
            self.place.driver.prompt = True
        await self._shorten()
        for claim in self._objects("resourceclaims"):
            await self.expel(claim["metadata"]["name"])

    def _blocked(self) -> list[str]:
        return blocked(*map(self._objects, ("resourceclaims", "pods", "claimreservations")))

    async def _unblocked(self) -> None:
        """Check that no claim keeps pods waiting in vain, while nodes are closed and devices
        broken."""
        await self.place.sleep(STARTED)
        if not await self._until(lambda: not self._blocked(), self.patience.release):
            self.verdict.say("stuck", self._blocked())

    async def in_no_circle(self) -> None:
        """Check that no hold brings new pods to a device that evicts them.

        While no controller leads, a hold stays, and so the circle goes on until one does.
        """
        if not await self._is_tainted():
            return
        made = 0
        for _ in range(CIRCLES):
            made = made_beside_a_hold(await self._written(WATCHED))
            if made <= MADE:
                return
        self.verdict.say("stuck", [f"{made} pods were made in {WATCHED:g} s beside a hold"])

    async def _is_tainted(self) -> bool:
        devices = [each for body in await self.place.slices() for each in body["spec"]["devices"]]
        tainted = any(device.get("taints") for device in devices)
        return tainted or bool(await self.place.taint_rules())

    async def _shorten(self) -> None:
        """Shorten the times of annotated reservations: the defaults are longer than a schedule.

        Without a grace, signs of life of the node decide, and these nodes have no Lease.
        """
        times = {
            "forceDeletedPodGraceSeconds": self.place.bodies.grace,
            "reallocateTimeoutSeconds": REALLOCATE,
        }
        unset = {"forceDeletedPodGraceSeconds": 300, "reallocateTimeoutSeconds": 0}
        for reservation in self._objects("claimreservations"):
            shorter = {
                key: most
                for key, most in times.items()
                if (reservation["spec"].get(key) or unset[key]) > most
            }
            if shorter:
                await self._patch(RESERVATION, reservation, {"spec": shorter})

    async def expel(self, name: str) -> None:
        """Remove the entries of the foreign writer, also while KCM writes the claim in a loop."""
        for _ in range(EXPEL_TRIES):
            with suppress(*TROUBLE):
                await self._try_to_expel(name)
                return

    async def _try_to_expel(self, name: str) -> None:
        """Remove foreign entries; deallocate if the list is then empty and no reservation names
        the claim. Who deallocates also removes the finalizer."""
        claims = self.place.bodies.fleet.claims
        claim = await self.place.client.get(claims, self.place.namespace, name)
        status = without_foreign(claim, self._objects)
        if status is None:
            return
        await self.place.put_status(claim, status)
        if not status.keys() & {"reservedFor", "allocation"}:
            await self._patch(claims, claim, {"metadata": {"finalizers": None}})

    def _missing(self) -> list[str]:
        """Workloads whose pods do not all run, and foreign entries."""
        return missing_pods(self._objects) + [
            f"resourceclaims/{claim['metadata']['name']}: lists a foreign entry"
            for claim in self._objects("resourceclaims")
            if without_foreign(claim, self._objects) is not None
        ]

    def _waiting(self) -> list[str]:
        """Pods that do not run, with the last reported reason."""
        return [
            f"pod {pod['metadata']['name']} on {pod['spec'].get('nodeName', '-')} waits: "
            + "; ".join(
                f"{condition.get('reason', condition['type'])}: {condition.get('message', '')}"
                for condition in pod["status"].get("conditions") or ()
                if condition["status"] == "False"
            )
            + self.place.refused(pod["metadata"]["name"])
            for pod in self._objects("pods")
            if pod["status"].get("phase") == "Pending"
        ]

    async def _make_way(self) -> None:
        """Help as users would: create missing claims and PodGroups, and delete pods that can never
        run."""
        claims = {claim["metadata"]["name"]: claim for claim in self._objects("resourceclaims")}
        for name, claim in claims.items():
            await self._dissolve(claim)
            if without_foreign(claim, self._objects) is not None:
                await self.expel(name)
        for pod in self._objects("pods"):
            await self._make_group(pod)
            for name in named_claims(pod):
                if name not in claims:
                    claims[name] = self.place.bodies.claim(name)
                    await tried(self.place.client.create(claims[name]))
            if is_in_the_way(pod, claims):
                await self._delete(POD, pod)

    async def _dissolve(self, claim: Object) -> None:
        """Delete the PodGroups that keep a claim which is being deleted: it takes no more pods."""
        if is_deleting(claim):
            for entry in (claim.get("status") or {}).get("reservedFor") or ():
                if entry["resource"] == "podgroups":
                    await self._delete(self.place.bodies.groups, {"metadata": entry})

    async def _make_group(self, pod: Object) -> None:
        """Create a PodGroup that a pod names and claimctl is not asked to create any more."""
        name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if not name or self.place.find("podgroups", name):
            return
        claim = pod["spec"]["resourceClaims"][0]["resourceClaimName"]
        await tried(self.place.client.create(self.place.bodies.pod_group(name, claim)))

    # -- nothing goes round in a circle

    async def _still(self) -> None:
        """Check that nothing writes held claims while all pods run or have finished."""
        await self.place.sleep(self.patience.still)
        await self._settles(is_held, FEW, "writes to claims", WATCHED)

    async def _quiet(self) -> None:
        """Check promise 7: claimctl writes nothing on a settled cluster."""

        def counts(revision: Revision) -> bool:
            return revision.actor == CONTROLLER_USER and revision.plural not in OWN_BUSINESS

        await self.place.sleep(self.patience.quiet)
        await self._settles(counts, 0, "writes while all is quiet", self.patience.watched)

    async def _settles(
        self, counts: Callable[[Revision], bool], most: int, what: str, seconds: float
    ) -> None:
        """Check that writes come to an end. After an outage the watches of Kubernetes' components
        come back one by one, after back-offs of half a minute and more, and claimctl answers their
        writes.
        """
        written: list[Revision] = []
        for _ in range(self.patience.rounds):
            written = [revision for revision in await self._written(seconds) if counts(revision)]
            if len(written) <= most:
                return
        writers = sorted({revision.actor.rpartition(":")[2] for revision in written})
        names = sorted({f"{revision.plural}/{revision.name}" for revision in written})
        text = f"{len(written)} {what} in {seconds:g} s, still: {names[:3]} by {writers}"
        self.verdict.say("violations", [text])

    async def _written(self, seconds: float) -> list[Revision]:
        since = self.place.revision
        await self.place.sleep(seconds)
        return self.place.written(since)

    async def released(self, left: Callable[[], list[str]]) -> None:
        """Wait until ``left`` returns nothing. A controller that returns late from an outage may
        create a ClaimReservation for an annotation meanwhile."""
        end = self.place.now() + self.patience.release
        while left():
            await self._shorten()
            if not await self._until(lambda: not left(), LOOK) and self.place.now() > end:
                self.verdict.say("leaks", left())
                return

    # -- no workload wants pods

    def _kept(self) -> list[str]:
        """Claims that stay allocated although all their holders are idle or have ended."""
        kept = []
        for claim in self._objects("resourceclaims"):
            name = claim["metadata"]["name"]
            holders = [
                reservation["spec"]
                for reservation in self._objects("claimreservations")
                if reservation["spec"]["resourceClaimName"] == name
            ]
            if (
                is_allocated(claim)
                and holders
                and all(map(self._idle, holders))
                and not self._used(name)
            ):
                kept.append(f"claim {name} is kept for workloads that want no pods")
        return kept

    def _idle(self, holder: Object) -> bool:
        """Whether a ClaimReservation releases its claim when it is not used, and it is not used."""
        ref = holder["workloadRef"]
        workload = self.place.find(PLURALS[ref["kind"]], ref["name"])
        if holder.get("retentionPolicy") != "WhileRunning" or workload is None:
            return holder.get("retentionPolicy") == "WhileRunning"
        spec = workload["spec"]
        if ref["kind"] == "Job":
            return bool(spec.get("suspend")) or has_ended(workload)
        return bool(spec.get("replicas") == 0)

    def _used(self, claim: str) -> bool:
        """Whether a pod that has not ended names the claim, or a PodGroup that a user created."""
        pods = [pod for pod in self._objects("pods") if pod["status"].get("phase") not in ENDED]
        return any(claim in named_claims(user) for user in (*pods, *self._groups_of_users()))

    def _groups_of_users(self) -> list[Object]:
        groups = self._objects("podgroups")
        return [group for group in groups if not group["metadata"].get("ownerReferences")]

    # -- what was never claimctl's

    def _known(self) -> set[str]:
        """The claims that claimctl ever wrote to, or that a ClaimReservation ever named."""
        own = self.place.written()
        return {revision.name for revision in own if revision.actor == CONTROLLER_USER} | {
            revision.object()["spec"]["resourceClaimName"]
            for revision in own
            if revision.plural == "claimreservations"
        }

    async def strip_strangers(self, known: set[str]) -> None:
        """Free claims that were generated for pods and that kube-controller-manager left allocated
        because it was down at the wrong moment (kubernetes/kubernetes#132334). An administrator has
        to do that: no ClaimReservation asks claimctl to. Such claims are counted apart."""

        def strangers() -> list[Object]:
            claims = filter(is_deleting, self._objects("resourceclaims"))
            return [claim for claim in claims if claim["metadata"]["name"] not in known]

        await self._until(lambda: not strangers(), SHORT)
        for claim in strangers():
            name = claim["metadata"]["name"]
            self.verdict.others.append(f"claim {name} is left, deleted and allocated")
            await tried(self.place.put_status(claim, {}))
            nothing = {"metadata": {"finalizers": None}}
            await self._patch(self.place.bodies.fleet.claims, claim, nothing)

    # -- everything goes

    async def _clear(self) -> None:
        """Delete workloads and orphaned pods, and ask for releases of claims with policy Manual."""
        for plural, kind in WORKLOADS.items():
            for workload in self._objects(plural):
                await self._delete(kind, workload)
        for group in self._groups_of_users():
            await self._delete(self.place.bodies.groups, group)
        await self.place.sleep(3.0)
        for pod in self._objects("pods"):
            await self._delete(POD, pod)
        for reservation in self._objects("claimreservations"):
            claim = self.place.find("resourceclaims", reservation["spec"]["resourceClaimName"])
            if reservation["spec"].get("retentionPolicy") == "Manual" and claim is not None:
                asked = {"claimctl.io/release": claim["metadata"]["uid"]}
                await self._patch(RESERVATION, reservation, {"metadata": {"annotations": asked}})

    async def strike_out(self) -> None:
        """Force-delete every pod. By now all is quiet and claimctl has watched for longer than any
        grace. So only these pods keep the claims of the workloads that are deleted next."""
        options = {"gracePeriodSeconds": 0}
        await asyncio.gather(
            *(
                tried(self.place.client.delete(POD, self.place.namespace, name, options))
                for name in sorted(pod["metadata"]["name"] for pod in self._objects("pods"))
            )
        )

    def _unreleased(self, known: set[str]) -> list[str]:
        """Pods, and claims that are allocated, have entries or a finalizer, or cannot be
        deleted."""
        stays = [f"pod {pod['metadata']['name']} stays" for pod in self._objects("pods")]
        held = reserved(self._objects)
        for claim in self._objects("resourceclaims"):
            meta, status = claim["metadata"], claim.get("status") or {}
            if meta["name"] not in known | held:
                continue
            signs = {
                "allocated": status.get("allocation"),
                "listed": status.get("reservedFor"),
                "being deleted": meta.get("deletionTimestamp"),
                "with finalizer": FINALIZER in (meta.get("finalizers") or ()),
            }
            if any(signs.values()):
                present = ", ".join(sign for sign, there in signs.items() if there)
                whose = "" if meta["name"] in held else " (no reservation names it)"
                stays.append(f"claim {meta['name']} is {present}{whose}")
        return stays

    # -- requests

    def _objects(self, plural: str) -> list[Object]:
        return self.place.objects(plural)

    async def _until(self, holds: Callable[[], bool], within: float) -> bool:
        return await self.place.until(holds, within, STEP)

    async def _delete(self, kind: Version, body: Object) -> None:
        if not is_deleting(body):
            name = body["metadata"]["name"]
            await tried(self.place.client.delete(kind, self.place.namespace, name))

    async def _patch(self, kind: Version, body: Object, patch: Object) -> None:
        name = body["metadata"]["name"]
        await tried(self.place.client.patch(kind, self.place.namespace, name, patch))
