"""What is wrong in a cluster, as its objects alone show it, without claimctl's judgement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from claimctl.wire.base import Object
from labs.torture.blocked import claims_of
from labs.torture.drivers import results_of
from labs.torture.stored import PLURALS
from labs.torture.testbed import Testbed

PATIENCE = timedelta(seconds=10)
"""A pod that has waited for so long waits for something."""
RELEASE = "claimctl.io/release"
"""The annotation by which a user asks for a release."""


@dataclass(frozen=True, slots=True)
class ObservedObjects:
    """What the API server has at one moment."""

    now: datetime
    pods: list[Object]
    claims: list[Object]
    reservations: list[Object]
    nodes: list[Object]
    slices: list[Object]
    plans: list[Object]
    groups: list[Object]
    workloads: dict[str, list[Object]]
    """By kind."""
    classes: list[Object]
    native: bool
    """Whether the API server keeps for whom a claim was made (KEP-5194)."""

    @classmethod
    def of(cls, testbed: Testbed) -> ObservedObjects:
        groups = "podgroups" in testbed.plurals()
        return cls(
            now=testbed.cluster.clock.now(),
            pods=testbed.objects("pods"),
            claims=testbed.objects("resourceclaims"),
            reservations=testbed.objects("claimreservations"),
            nodes=testbed.objects("nodes"),
            slices=testbed.objects("resourceslices"),
            plans=testbed.objects("downgradeplans"),
            groups=testbed.objects("podgroups") if groups else [],
            workloads={kind: testbed.objects(plural) for kind, plural in PLURALS.items()},
            classes=testbed.objects("deviceclasses"),
            native=testbed.cluster.features.api_reserved_for,
        )

    def waiting(self) -> list[Object]:
        """The pods that name a claim and have waited for too long, the longest first."""
        late = [pod for pod in self.pods if _waits(pod) and self.now - _made(pod) >= PATIENCE]
        return sorted(late, key=lambda pod: (_made(pod), name_of(pod)))

    def ailments(self) -> list[str]:
        """Why the cluster is not in good order; none if it is: nothing is broken, nothing waits,
        and nothing is under way."""
        return [
            *(f"{name_of(plan)} is a plan under way" for plan in self.plans),
            *self._of_nodes(),
            *self._of_pods(),
            *self._of_workloads(),
            *self._of_claims(),
            *self._of_use(),
            *self._of_reservations(),
        ]

    def _of_nodes(self) -> Iterator[str]:
        for node in self.nodes:
            ready = _condition(node, "Ready").get("status")
            taints = node["spec"].get("taints") or ()
            closed = not all(_is_tolerated(taint, pod) for taint in taints for pod in self.pods)
            if ready != "True" or node["spec"].get("unschedulable") or closed:
                yield f"node {name_of(node)} takes no pods"
        for piece in self.slices:
            if any(device.get("taints") for device in piece["spec"]["devices"]):
                yield f"slice {name_of(piece)} has a device with a taint"

        if {piece["spec"].get("nodeName") for piece in self.slices} < {*names_of(self.nodes)}:
            yield "a node has no devices"
        if not self.classes:
            yield "the DeviceClass does not exist"
        published = {
            (piece["spec"]["driver"], piece["spec"]["pool"]["name"], device["name"])
            for piece in self.slices
            for device in piece["spec"]["devices"]
        }
        for claim in self.claims:
            for device in results_of(claim):
                if (device["driver"], device["pool"], device["device"]) not in published:
                    yield f"a device of claim {name_of(claim)} is not published"

    def _of_pods(self) -> Iterator[str]:
        for pod in self.pods:
            phase = pod["status"].get("phase")
            if phase not in ("Running", "Succeeded", "Failed") or _is_deleting(pod):
                yield f"pod {name_of(pod)} is {phase}, or is deleted"
            if not pod["metadata"].get("ownerReferences"):
                yield f"pod {name_of(pod)} is nobody's"

    def _of_workloads(self) -> Iterator[str]:
        there = set(names_of(self.claims))
        for kind, workloads in self.workloads.items():
            for workload in workloads:
                if _is_deleting(workload):
                    yield f"{kind} {name_of(workload)} is deleted"
                status = workload.get("status", {})
                wanted = workload["spec"].get("replicas", 1) if kind != "Job" else 0
                if status.get("replicas", 0) != wanted and kind != "Job":
                    yield f"{kind} {name_of(workload)} has not the pods that it wants"
                missing = claims_of({**workload["spec"]["template"], "status": {}}) - there
                if missing and not _has_ended(workload):
                    yield f"{kind} {name_of(workload)} needs claims that do not exist"

    def _of_claims(self) -> Iterator[str]:
        every = (self.pods, self.groups, *self.workloads.values())
        uids = {it["metadata"]["uid"] for objects in every for it in objects}
        for claim in self.claims:
            status = claim.get("status") or {}
            listed = {entry["uid"] for entry in status.get("reservedFor") or ()}
            if _is_deleting(claim) or listed - uids:
                yield f"claim {name_of(claim)} is deleted, or lists what is gone"
            if _is_allocated(claim) != bool(listed):
                yield f"claim {name_of(claim)} has devices and no list, or a list and no devices"

    def _of_use(self) -> Iterator[str]:
        """Pods that run without devices of their claims, or where they are not."""
        places = {name_of(claim): _nodes_of(claim) for claim in self.claims}
        for pod in self.pods:
            running = pod["status"].get("phase") == "Running"
            for claim in claims_of(pod) if running else ():
                if pod["spec"].get("nodeName") not in places.get(claim, ()):
                    yield f"pod {name_of(pod)} has no devices of {claim} on its node"

    def _of_reservations(self) -> Iterator[str]:
        claims = {name_of(claim): claim for claim in self.claims}
        of_claim: dict[str, list[Object]] = {}
        for made in self.reservations:
            of_claim.setdefault(made["spec"]["resourceClaimName"], []).append(made)
            ref, meta = made["spec"]["workloadRef"], made["metadata"]
            if ref["name"] not in names_of(self.workloads.get(ref["kind"], ())):
                yield f"ClaimReservation {name_of(made)} is of a workload that is not there"
            if _is_deleting(made) or RELEASE in (meta.get("annotations") or {}):
                yield f"ClaimReservation {name_of(made)} goes, or has to release its claim"
        for name, reservations in of_claim.items():
            claim = claims.get(name)
            if claim is None:
                yield f"claim {name} does not exist"
            elif self.native and (len(reservations) > 1 or not claim["spec"].get("reservedFor")):
                yield f"claim {name} was not made for the workload that is to hold it"
            elif _is_allocated(claim) and all(map(self._is_over, reservations)):
                yield f"claim {name} is to be released"

    def _is_over(self, made: Object) -> bool:
        """Whether the workload has ended, or been idle for longer than its claim is to be held."""
        policy, ref = (
            made["spec"].get("retentionPolicy", "WhileRunning"),
            made["spec"]["workloadRef"],
        )
        if policy != "Manual" and ref["name"] in names_of(filter(_has_ended, self._jobs(ref))):
            return True
        since = (made.get("status") or {}).get("idleSince")
        if since is None or policy != "WhileRunning":
            return False
        held = timedelta(seconds=made["spec"].get("idleTimeoutSeconds", 60))
        return datetime.fromisoformat(since) + held <= self.now

    def _jobs(self, ref: Object) -> list[Object]:
        return self.workloads["Job"] if ref["kind"] == "Job" else []


def name_of(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


def names_of(objects: Iterable[Object]) -> list[str]:
    return [name_of(obj) for obj in objects]


def _waits(pod: Object) -> bool:
    """Whether the pod does not run, and should: nobody deletes it, and no gate keeps it."""
    pending = pod["status"].get("phase", "Pending") == "Pending"
    gated = bool(pod["spec"].get("schedulingGates"))
    return pending and not gated and not _is_deleting(pod) and bool(claims_of(pod))


def _is_tolerated(taint: Object, pod: Object) -> bool:
    """Whether the pod tolerates the taint by its key and value."""
    wanted = (taint["key"], taint.get("value"), taint["effect"])
    known = pod["spec"].get("tolerations") or ()
    return wanted in {(it.get("key"), it.get("value"), it.get("effect")) for it in known}


def _made(pod: Object) -> datetime:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def _has_ended(workload: Object) -> bool:
    """Whether it is a Job that is over."""
    ends = (_condition(workload, type_).get("status") for type_ in ("Complete", "Failed"))
    return "True" in ends


def _is_allocated(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def _nodes_of(claim: Object) -> set[str]:
    """The nodes that the claim's allocation names."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return {
        value for term in terms for it in term.get("matchFields") or () for value in it["values"]
    }


def _is_deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _condition(obj: Object, type_: str) -> Object:
    known = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in known if each["type"] == type_), {})
