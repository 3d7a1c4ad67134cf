"""The end of every schedule: faults stop, workloads get their pods, then everything is deleted.

Afterwards there must be no allocated claim, no finalizer, no reference, no ClaimReservation or
PodGroup that cannot be deleted, and no write by claimctl while all is quiet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kube_in_process.real.client import Version
from kube_in_process.real.servers.nodes import NODE
from kube_in_process.real.servers.pod_worker import POD
from kube_in_process.storage.store import Revision

from claimctl.kube.errors import ApiError
from claimctl.wire.base import Object
from labs.torture.blocked import ENDED, blocked
from labs.torture.stored import (
    PLURALS,
    has_ended,
    is_held,
    is_in_the_way,
    made_beside_a_hold,
    missing_pods,
    named_claims,
    reserved,
    without_foreign,
)
from labs.torture_real.bodies import REALLOCATE, RESERVATION
from labs.torture_real.controllers import SLOW_BINDING_SECONDS, USER
from labs.torture_real.judge import RealVerdict
from labs.torture_real.user_actions import TROUBLE, RealUserActions

RUN_SECONDS, RUN_ROUNDS = 30.0, 5
"""Seconds until users help pods that do not run, and how many times they do."""
EXPEL_TRIES = 50
"""How many times the foreign writer tries to remove its entries."""
RELEASE_SECONDS, LOOK_SECONDS = SLOW_BINDING_SECONDS + 60.0, 10.0
GONE_SECONDS = 90.0
STILL, WATCHED, FEW = 12.0, 8.0, 8
"""Seconds after which nothing may be written in a loop, how long that is watched, and how many
writes are no loop yet."""
STARTED, MADE = 5.0, 12
"""Seconds until pods have begun to wait, and how many new pods in ``WATCHED`` seconds are no
circle yet."""
BLOCKED_SECONDS = SLOW_BINDING_SECONDS + 60.0
"""Seconds within which claimctl has to give up a claim that keeps pods waiting."""
QUIET = 15.0
SETTLE_ROUNDS = 10
CIRCLE_ROUNDS = 3
"""How often that is watched before it counts as writing without an end."""
FINALIZER = "resource.kubernetes.io/delete-protection"
WORKLOADS: dict[str, Version] = {
    "deployments": ("apps/v1", "Deployment"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "jobs": ("batch/v1", "Job"),
    "replicasets": ("apps/v1", "ReplicaSet"),
}


@dataclass
class FinalChecks:
    """The end of one schedule."""

    users: RealUserActions
    verdict: RealVerdict
    groups: Version
    by_force: bool = False
    """Whether all pods are force-deleted at the end, while their containers run."""

    @property
    def space(self) -> str:
        return self.users.namespace

    def _objects(self, plural: str) -> list[Object]:
        return self.users.cluster.sight.objects(plural, self.space)

    async def conclude(self) -> None:
        """Bring the schedule to its end and record what did not come true."""
        await self.calm()
        await self._unblocked()
        await self.in_no_circle()
        await self._mend()
        for _ in range(RUN_ROUNDS):
            # after a restore, a claim waits for the grace, also of a reservation that came since
            await self._shorten()
            if await _until(lambda: not self._missing(), RUN_SECONDS):
                break
            await self._make_way()
        else:
            self.verdict.say("stuck", [*self._missing(), *self._waiting()])
        await self._still()
        await self.released(self._kept)
        await self._clear()
        await self.released(self._unreleased)
        await self.strip_strangers()
        await self._quiet()
        await self._part()

    async def _tried(self, action: Awaitable[Any]) -> None:
        """Do one action. The API server is up again; refusals show in the end."""
        with suppress(*TROUBLE):
            await action

    # -- all is well again

    async def calm(self) -> None:
        """Bring lost nodes back, shorten times, remove foreign entries, and let drivers be quick.

        Nodes stay closed, and devices broken.
        """
        users = self.users
        for name in sorted(users.lost):
            await self._tried(users.kubelets.recover(name, rebooted=False))
        users.lost.clear()
        if users.driver is not None:
            users.driver.prompt = True
        await self._shorten()
        for claim in self._objects("resourceclaims"):
            await self._tried(self._expel(claim["metadata"]["name"]))

    async def _mend(self) -> None:
        """Uncordon nodes and mend devices."""
        users = self.users
        for name in users.bodies.fleet.names:
            opened = {"spec": {"unschedulable": None}}
            await self._tried(users.client.patch(NODE, "", name, opened))
        await self._tried(users.mend_devices())

    def _blocked(self) -> list[str]:
        return blocked(*map(self._objects, ("resourceclaims", "pods", "claimreservations")))

    async def _unblocked(self) -> None:
        """Check that no claim keeps pods waiting in vain."""
        await asyncio.sleep(STARTED)
        if not await _until(lambda: not self._blocked(), BLOCKED_SECONDS):
            self.verdict.say("stuck", self._blocked())

    async def in_no_circle(self) -> None:
        """Check that no hold brings new pods to a device that evicts them.

        While no controller leads, a hold stays, and so the circle goes on until one does.
        """
        if not self.users.broken:
            return
        made = 0
        for _ in range(CIRCLE_ROUNDS):
            made = made_beside_a_hold(await self._written(WATCHED))
            if made <= MADE:
                return
        self.verdict.say("stuck", [f"{made} pods were made in {WATCHED:g} s beside a hold"])

    async def _shorten(self) -> None:
        """Shorten the times of annotated reservations: the defaults are longer than a schedule.

        Without a grace, signs of life of the node decide, and these nodes have no Lease.
        """
        times = {
            "forceDeletedPodGraceSeconds": self.users.bodies.grace,
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

    async def _expel(self, name: str) -> None:
        """Remove the entries of the foreign writer, also while KCM writes the claim in a loop."""
        for _ in range(EXPEL_TRIES):
            with suppress(ApiError):
                await self._try_to_expel(name)
                return

    async def _try_to_expel(self, name: str) -> None:
        """Remove foreign entries; deallocate if the list is then empty and no reservation names
        the claim. Who deallocates also removes the finalizer."""
        claim = await self.users.client.get(self.users.bodies.fleet.claims, self.space, name)
        status = without_foreign(claim, self._objects)
        if status is None:
            return
        await self.users.put_status(claim, status)
        if not status.keys() & {"reservedFor", "allocation"}:
            nothing = {"metadata": {"finalizers": None}}
            await self._patch(self.users.bodies.fleet.claims, claim, nothing)

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
            + self.users.kubelets.refused.get(f"{self.space}/{pod['metadata']['name']}", "")
            for pod in self._objects("pods")
            if pod["status"].get("phase") == "Pending"
        ]

    async def _make_way(self) -> None:
        """Help as users would: create missing claims and PodGroups, and delete pods that can never
        run."""
        claims = {claim["metadata"]["name"]: claim for claim in self._objects("resourceclaims")}
        for name, claim in claims.items():
            if without_foreign(claim, self._objects) is not None:
                await self._tried(self._expel(name))
        for pod in self._objects("pods"):
            await self._make_group(pod)
            for name in named_claims(pod):
                if name not in claims:
                    claims[name] = self.users.bodies.claim(name)
                    await self._tried(self.users.client.create(claims[name]))
            if is_in_the_way(pod, claims):
                await self._delete(POD, pod)

    async def _make_group(self, pod: Object) -> None:
        """Create a PodGroup that a pod names and claimctl is not asked to create any more."""
        name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if not name or self.users.cluster.sight.find("podgroups", self.space, name):
            return
        claim = pod["spec"]["resourceClaims"][0]["resourceClaimName"]
        body = self.users.bodies.pod_group(name, claim, self.groups[0])
        await self._tried(self.users.client.create(body))

    # -- nothing goes round in a circle

    async def _still(self) -> None:
        """Check that nothing writes held claims while all pods run or have finished."""
        await asyncio.sleep(STILL)
        await self._settles(is_held, FEW, "writes to claims")

    async def _quiet(self) -> None:
        """Check promise 7: claimctl writes nothing on a settled cluster."""
        await asyncio.sleep(QUIET)
        await self._settles(lambda each: each.actor == USER, 0, "writes while all is quiet")

    async def _settles(self, counts: Callable[[Revision], bool], most: int, what: str) -> None:
        """Check that writes come to an end. After an outage the watches of Kubernetes' components
        come back one by one, after back-offs of half a minute and more, and claimctl answers their
        writes.
        """
        written: list[Revision] = []
        for _ in range(SETTLE_ROUNDS):
            written = [revision for revision in await self._written(WATCHED) if counts(revision)]
            if len(written) <= most:
                return
        writers = sorted({revision.actor.rpartition(":")[2] for revision in written})
        names = sorted({f"{revision.plural}/{revision.name}" for revision in written})
        text = f"{len(written)} {what} in {WATCHED:g} s, still: {names[:3]} by {writers}"
        self.verdict.say("violations", [text])

    async def _written(self, seconds: float) -> list[Revision]:
        since = self.users.cluster.sight.number
        await asyncio.sleep(seconds)
        revisions = self.users.cluster.history.revisions
        return [
            revision
            for revision in revisions
            if revision.number > since and revision.namespace == self.space
        ]

    async def released(self, left: Callable[[], list[str]]) -> None:
        """Wait until ``left`` returns nothing. A controller that returns late from an outage may
        create a ClaimReservation for an annotation meanwhile."""
        end = _now() + RELEASE_SECONDS
        while left():
            await self._shorten()
            if not await _until(lambda: not left(), LOOK_SECONDS) and _now() > end:
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
            allocated = (claim.get("status") or {}).get("allocation")
            if allocated and holders and all(map(self._idle, holders)) and not self._used(name):
                kept.append(f"claim {name} is kept for workloads that want no pods")
        return kept

    def _idle(self, holder: Object) -> bool:
        """Whether a ClaimReservation releases its claim when it is not used, and it is not used."""
        ref = holder["workloadRef"]
        workload = self.users.cluster.sight.find(PLURALS[ref["kind"]], self.space, ref["name"])
        if holder.get("retentionPolicy") != "WhileRunning" or workload is None:
            return holder.get("retentionPolicy") == "WhileRunning"
        spec = workload["spec"]
        if ref["kind"] == "Job":
            return bool(spec.get("suspend")) or has_ended(workload)
        return bool(spec.get("replicas") == 0)

    def _used(self, claim: str) -> bool:
        """Whether a pod that has not ended names the claim."""
        return any(
            claim in named_claims(pod)
            for pod in self._objects("pods")
            if pod["status"].get("phase") not in ENDED
        )

    # -- what was never claimctl's

    def _concerns_claimctl(self, claim: str) -> bool:
        """Whether claimctl ever wrote to the claim, or a ClaimReservation ever named it."""
        own = [
            revision
            for revision in self.users.cluster.history.revisions
            if revision.namespace == self.space
        ]
        return any(revision.actor == USER and revision.name == claim for revision in own) or any(
            revision.plural == "claimreservations"
            and revision.object()["spec"]["resourceClaimName"] == claim
            for revision in own
        )

    async def strip_strangers(self) -> None:
        """Free claims that were generated for pods and that kube-controller-manager left allocated
        because it was down at the wrong moment (kubernetes/kubernetes#132334). An administrator has
        to do that: no ClaimReservation asks claimctl to. Such claims are counted apart."""
        await _until(lambda: not self._strangers(), GONE_SECONDS)
        for claim in self._strangers():
            name = claim["metadata"]["name"]
            self.verdict.others.append(f"claim {name} is left, deleted and allocated")
            await self._tried(self.users.put_status(claim, {}))
            nothing = {"metadata": {"finalizers": None}}
            await self._patch(self.users.bodies.fleet.claims, claim, nothing)

    def _strangers(self) -> list[Object]:
        return [
            claim
            for claim in self._objects("resourceclaims")
            if claim["metadata"].get("deletionTimestamp")
            and not self._concerns_claimctl(claim["metadata"]["name"])
        ]

    # -- everything goes

    async def _clear(self) -> None:
        """Delete workloads and orphaned pods, and ask for releases of claims with policy Manual."""
        if self.by_force:
            await self.strike_out()
        for plural, kind in WORKLOADS.items():
            for workload in self._objects(plural):
                await self._delete(kind, workload)
        for group in self._objects("podgroups"):
            if not group["metadata"].get("ownerReferences"):
                await self._delete(self.groups, group)
        await asyncio.sleep(3.0)
        for pod in self._objects("pods"):
            await self._delete(POD, pod)
        for reservation in self._objects("claimreservations"):
            claim = self.users.cluster.sight.find(
                "resourceclaims", self.space, reservation["spec"]["resourceClaimName"]
            )
            if reservation["spec"].get("retentionPolicy") == "Manual" and claim is not None:
                asked = {"claimctl.io/release": claim["metadata"]["uid"]}
                await self._patch(RESERVATION, reservation, {"metadata": {"annotations": asked}})

    async def strike_out(self) -> None:
        """Force-delete every pod. By now all is quiet and claimctl has watched for longer than any
        grace. So only these pods keep the claims of the workloads that are deleted next."""
        options = {"gracePeriodSeconds": 0}
        await asyncio.gather(
            *(
                self._tried(self.users.client.delete(POD, self.space, name, options))
                for name in sorted(pod["metadata"]["name"] for pod in self._objects("pods"))
            )
        )

    def _unreleased(self) -> list[str]:
        """Pods, and claims that are allocated, have entries or a finalizer, or cannot be
        deleted."""
        stays = [f"pod {pod['metadata']['name']} stays" for pod in self._objects("pods")]
        for claim in self._objects("resourceclaims"):
            meta, status = claim["metadata"], claim.get("status") or {}
            if not self._concerns_claimctl(meta["name"]):
                continue
            signs = {
                "allocated": status.get("allocation"),
                "listed": status.get("reservedFor"),
                "being deleted": meta.get("deletionTimestamp"),
                "with finalizer": FINALIZER in (meta.get("finalizers") or ()),
            }
            if any(signs.values()):
                present = ", ".join(sign for sign, there in signs.items() if there)
                held = (
                    "" if meta["name"] in reserved(self._objects) else " (no reservation names it)"
                )
                stays.append(f"claim {meta['name']} is {present}{held}")
        return stays

    async def _part(self) -> None:
        """Delete the ClaimReservations, then the whole namespace."""
        for reservation in self._objects("claimreservations"):
            await self._delete(RESERVATION, reservation)
        if not await _until(lambda: not self._objects("claimreservations"), RUN_SECONDS):
            names = [
                reservation["metadata"]["name"]
                for reservation in self._objects("claimreservations")
            ]
            self.verdict.say("leaks", [f"reservation {name} stays" for name in names])
        await self._tried(self.users.client.delete(("v1", "Namespace"), "", self.space))
        if not await _until(self._gone, GONE_SECONDS):
            left = [
                f"{plural}/{body['metadata']['name']}"
                for plural in ("pods", "resourceclaims", "podgroups", "claimreservations")
                for body in self._objects(plural)
            ]
            self.verdict.say("leaks", [f"the namespace stays, with {left or 'nothing in it'}"])

    def _gone(self) -> bool:
        return self.users.cluster.sight.find("namespaces", "", self.space) is None

    async def _delete(self, kind: Version, obj: Object) -> None:
        meta = obj["metadata"]
        if meta.get("deletionTimestamp"):
            return
        options = {"propagationPolicy": "Background", "preconditions": {"uid": meta["uid"]}}
        await self._tried(self.users.client.delete(kind, self.space, meta["name"], options))

    async def _patch(self, kind: Version, obj: Object, patch: Object) -> None:
        name = obj["metadata"]["name"]
        await self._tried(self.users.client.patch(kind, self.space, name, patch))


async def _until(holds: Callable[[], bool], within: float) -> bool:
    end = _now() + within
    while not holds():
        if _now() >= end:
            return False
        await asyncio.sleep(0.5)
    return True


def _now() -> float:
    return asyncio.get_running_loop().time()
