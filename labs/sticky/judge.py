"""Judges sticky claims by the server's history alone: each ordinal keeps its device, or has a
reason to lose it that users, nodes or devices gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kube_in_process.storage.store import Revision

from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl_witness.world import TERMINAL, World, as_claim, as_pod
from labs.sticky.leaders import SET_NAME
from labs.sticky.wishes import KINDS, PodPlace, StickyPlace, Wishes, wish_of
from labs.torture.faulty_transport import ClaimDeletion

ASKED, REWRITTEN = "claimctl.io/sticky", "claimctl.io/sticky-claims"
ENTRY = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim."""
OWNERS = {"StatefulSet": "sts", "Job": "job"}
INDEX = {"sts": "apps.kubernetes.io/pod-index", "job": "batch.kubernetes.io/job-completion-index"}
SLACK = 40.0
"""Seconds for which a reason counts that has passed: a controller may see the cluster late, or die
in the middle of a release."""
BROKEN = 90.0
"""The same for a node or a device that was broken: pods first wait for it."""
YOUNG = 8.0
"""Seconds from the allocation of a claim to a write of claimctl within which its hold may be
missing: controllers die."""


@dataclass(slots=True)
class JudgedClaim:
    """One sticky claim, as the server has it now."""

    uid: str
    made_at: float
    devices: frozenset[tuple[str, str]] = frozenset()
    allocated_at: float = 0.0
    held: bool = False
    """Whether its workload is listed, by ``status`` or ``spec``."""
    let_go: str = ""
    """Why the hold went that was there, or the claim was deleted; '' before."""
    reserved_for: str = ""
    """The UID of ``spec.reservedFor``."""


@dataclass(frozen=True, slots=True)
class NamedClaims:
    """The claims that a new pod named, and when it was made."""

    at: float
    names: frozenset[str]


@dataclass(slots=True)
class StickyJudge:
    """Reads a history; notes what went wrong, and counts what happened.

    Args:
        users: the user names of claimctl.
        young: for how many seconds from its allocation, in which claimctl wrote something, a claim
            may be without a hold.
        deletions: which LIST of pods was the last before each deletion of a claim.
    """

    users: Collection[str]
    young: float = YOUNG
    deletions: Collection[ClaimDeletion] = ()
    world: World = field(default_factory=World)
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Pods that came back to their device, and for each reason the devices that were given up."""
    wishes: dict[tuple[str, str], Wishes] = field(default_factory=dict)
    claims: dict[str, JudgedClaim] = field(default_factory=dict)
    _last: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """By claim: the devices of the last pod that was bound, unless they were given up since."""
    _broken: dict[str, float] = field(default_factory=dict)
    """When a node, or a device ``POOL/DEVICE``, was broken last; inf if it is now."""
    _waited: dict[str, float] = field(default_factory=dict)
    """When a pod last waited for the claim."""
    _heard: float = 0.0
    """When claimctl last wrote anything about claims."""
    _made: dict[str, int] = field(default_factory=dict)
    """By UID: the revision that made a pod."""
    _named: dict[PodPlace, list[NamedClaims]] = field(default_factory=dict)
    """What the pods of a place named, one after the other."""
    refused: dict[str, float] = field(default_factory=dict)
    """By claim: when claimctl last took its driver for one that refuses holds, because a pod did
    not start for long. A lost node looks the same."""
    _withdrawn: set[str] = field(default_factory=set)
    """Claims whose ClaimReservation a person has deleted."""

    def __post_init__(self) -> None:
        self.world.listen(self._notice)

    def may_stay(self, place: StickyPlace) -> bool:
        """Whether the claim of a workload that is gone may be there at the end of the history.

        It may if the workload's settings kept it, and a pod of the workload might have named it.
        Pods that had another claim may have come and gone while claimctl was down. The template of
        a group's workers is known by their StatefulSet alone, which goes with the group.
        """
        known = self.wishes.get((place.pod.word, place.pod.owner))
        if known is None or not known.listed or known.last.exists:
            return False
        gone, before = known.last, [wish for wish in known.listed if wish.exists]
        long_before = [wish for wish in before if wish.at <= gone.at - SLACK]
        recent = [*long_before[-1:], *(wish for wish in before if wish.at > gone.at - SLACK)]
        unknown = ("", "another template") if place.pod.member else ("",)
        return gone.when_deleted == "Retain" and any(
            wish.is_over(place, superseded=False) in unknown for wish in recent
        )

    def held_in_vain(self, namespace: str) -> list[str]:
        """The claims with devices that no pod names, and whose workload wants none for them."""
        return [
            name
            for name, claim in self.claims.items()
            if claim.devices
            and (place := StickyPlace.of(name)) is not None
            and not self._is_wanted(place)
            and not self.world.users_of((namespace, name))
        ]

    def _is_wanted(self, place: StickyPlace) -> bool:
        known = self.wishes.get((place.pod.word, place.pod.owner))
        wish = known.last if known is not None and known.listed else None
        over = wish is None or wish.is_over(place, self._is_superseded(place))
        return wish is not None and wish.wants(place) and not over

    def _is_superseded(self, place: StickyPlace, since: float = inf) -> bool:
        """Whether the last pod of the place had another claim for the entry, or none; or another
        pod that was made after a time. The same is true of the next pod of a group if the
        StatefulSet that makes it says so."""
        pods = self._named.get(place.pod, [])
        maker = place.in_part
        known = self.wishes.get((maker.pod.word, maker.pod.owner)) if maker is not None else None
        if known is not None and maker is not None and known.ask_for_another(maker, since):
            return True
        return any(
            str(place) not in pod.names
            for number, pod in enumerate(pods, 1)
            if pod.at >= since or number == len(pods)
        )

    # -- what happens

    def _notice(self, revision: Revision, _: World) -> None:
        if revision.actor in self.users and revision.plural not in ("leases", "events"):
            self._heard = revision.at
        match revision.plural:
            case "statefulsets" | "jobs" | "leaderworkersets":
                self._notice_workload(revision)
            case "pods":
                self._notice_pod(revision)
            case "resourceclaims":
                self._notice_claim(revision)
            case "claimreservations":
                self._notice_reservation(revision)
            case "nodes":
                node = revision.object() if revision.type != "DELETED" else {}
                spec = node.get("spec") or {}
                closed = not node or spec.get("unschedulable") or spec.get("taints")
                self._note_broken(revision.name, bool(closed), revision.at)
            case "resourceslices":
                self._notice_devices(revision)

    def _notice_workload(self, revision: Revision) -> None:
        wishes = self.wishes.setdefault((KINDS[revision.plural], revision.name), Wishes())
        if revision.type == "DELETED":
            wishes.end(revision.at)
        else:
            wishes.note(wish_of(revision.plural, revision.object(), revision.at))

    def _notice_reservation(self, revision: Revision) -> None:
        body = revision.object()
        claim = body["spec"]["resourceClaimName"]
        conditions = (body.get("status") or {}).get("conditions") or ()
        if any(each["reason"] == "DriverRefusesHold" for each in conditions):
            self.refused[claim] = revision.at
        if revision.type == "ADDED":
            self._withdrawn.discard(claim)
        elif revision.verb == "delete" and not revision.actor.startswith("system:"):
            self._withdrawn.add(claim)

    def _notice_devices(self, revision: Revision) -> None:
        before = _devices_of(revision.previous_object())
        after = {} if revision.type == "DELETED" else _devices_of(revision.object())
        for name in before.keys() | after.keys():
            self._note_broken(name, after.get(name, True), revision.at)

    def _note_broken(self, name: str, broken: bool, at: float) -> None:
        if broken:
            self._broken[name] = inf
        elif self._broken.get(name) == inf:
            self._broken[name] = at

    def _notice_pod(self, revision: Revision) -> None:
        pod, before = as_pod(revision), revision.previous_object()
        if pod is None:
            spec = revision.object()["spec"]
            for entry in spec.get("resourceClaims") or ():
                if not spec.get("nodeName"):
                    self._waited[entry.get("resourceClaimName", "")] = revision.at
            return
        if revision.type == "ADDED":
            self._made[pod.metadata.uid] = revision.number
            if (place := _place_of(pod)) is not None:
                entries = pod.spec.resource_claims
                names = frozenset(entry.resource_claim_name or "" for entry in entries)
                self._named.setdefault(place, []).append(NamedClaims(revision.at, names))
                self._judge_names(pod, place)
            return
        bound = before is not None and not before["spec"].get("nodeName") and pod.spec.node_name
        for entry in pod.spec.resource_claims if bound else ():
            if StickyPlace.of(name := entry.resource_claim_name or "") is not None:
                self._judge_binding(name, pod)

    def _notice_claim(self, revision: Revision) -> None:
        claim, name = as_claim(revision), revision.name
        if revision.type == "ADDED":
            self._judge_generated(revision.object())
        if (place := StickyPlace.of(name)) is None:
            return
        known = self.claims.get(name)
        devices = _allocated(claim)
        if known is not None and known.devices and devices != known.devices:
            self._judge_loss(name, place, known, revision)
        elif known is not None and claim is not None:
            self._note_hold(name, place, known, claim, revision)
        if claim is None:
            self.claims.pop(name, None)
            self._judge_deletion(name, place, known, revision)
            return
        if known is None or known.uid != claim.metadata.uid:
            known = self.claims[name] = JudgedClaim(claim.metadata.uid, revision.at)
            reserved = claim.spec.reserved_for
            known.reserved_for = reserved.uid if reserved is not None else ""
        if devices != known.devices:
            known.devices, known.allocated_at, known.let_go = devices, revision.at, ""
        known.held = _is_held(claim, place)
        if claim.metadata.deleting and revision.actor in self.users and not _was_deleting(revision):
            self._judge_deletion(name, place, known, revision)

    # -- what is right

    def _judge_names(self, pod: Pod, wanted: PodPlace) -> None:
        """Each entry of a pod that asks has the name of the pod's own ordinal."""
        asked, name = pod.metadata.annotation(ASKED), pod.metadata.name
        if asked is None:
            return
        for entry in pod.spec.resource_claims:
            if asked not in ("*", entry.name):
                continue
            place = StickyPlace.of(entry.resource_claim_name or "")
            if entry.resource_claim_template_name or place is None:
                self._accuse(f"pod {name} has no sticky claim for {entry.name}")
            elif place.pod != wanted or place.entry != entry.name:
                self._accuse(f"pod {name} names {entry.resource_claim_name}")

    def _judge_generated(self, claim: dict[str, Any]) -> None:
        """No claim is generated for an entry that has a sticky one."""
        meta = claim["metadata"]
        entry = (meta.get("annotations") or {}).get(ENTRY)
        for owner in meta.get("ownerReferences") or ():
            pods = self.world.pods_in(meta["namespace"])
            for pod in pods if owner["kind"] == "Pod" else ():
                asked = pod.metadata.annotation(ASKED) in ("*", entry)
                is_sticky = asked and pod.metadata.annotation(REWRITTEN)
                if pod.metadata.uid == owner["uid"] and is_sticky:
                    self._accuse(f"claim {meta['name']} was generated for {pod.metadata.name}")

    def _judge_binding(self, name: str, pod: Pod) -> None:
        devices = self.claims[name].devices if name in self.claims else frozenset()
        before = self._last.get(name)
        self.counts["pods bound"] += 1
        if before is not None and before != devices:
            text = f"pod {pod.metadata.name} has {sorted(devices)} instead of {sorted(before)}"
            self._accuse(f"{text}, which were not given up")
        self.counts["pods that came back to their device"] += before == devices
        if devices:
            self._last[name] = devices

    def _judge_loss(
        self, name: str, place: StickyPlace, known: JudgedClaim, revision: Revision
    ) -> None:
        """A device is given up only for a reason."""
        self._last.pop(name, None)
        reason = self._reason(name, place, known, revision)
        self.counts[f"devices given up: {reason or 'without a reason'}"] += 1
        if not reason:
            text = f"{name} lost {sorted(known.devices)} at t={revision.at:.3f}"
            self._accuse(f"{text} by {revision.actor.rpartition(':')[2]}, held: {known.held}")

    def _note_hold(
        self,
        name: str,
        place: StickyPlace,
        known: JudgedClaim,
        claim: ResourceClaim,
        revision: Revision,
    ) -> None:
        """A hold that goes, or a claim that is deleted, has a reason then, whatever becomes of the
        devices later."""
        held, deleting = _is_held(claim, place), claim.metadata.deleting
        begins = deleting and not _was_deleting(revision)
        if held and not deleting:
            known.let_go = ""
        elif known.devices and ((known.held and not held) or begins):
            known.let_go = self._reason(name, place, known, revision)

    def _reason(self, name: str, place: StickyPlace, known: JudgedClaim, revision: Revision) -> str:
        at = revision.at
        if known.let_go:
            return known.let_go
        if name in self._withdrawn:
            return "reservation deleted"
        wishes = self.wishes.get((place.pod.word, place.pod.owner), Wishes())
        superseded = self._is_superseded(place, at - SLACK)
        if reason := wishes.excuse(place, at, SLACK, known.made_at, superseded):
            return reason
        if self._is_outdated(place, known):
            return "reserved for an earlier workload"
        if self.refused.get(name, -inf) >= at - BROKEN:
            return "driver that seems to refuse holds"
        devices = [f"{pool}/{device}" for pool, device in known.devices]
        if any(self._broken.get(device, -inf) >= at - BROKEN for device in devices):
            return "broken device"
        nodes = {pool for pool, _ in known.devices}
        if any(self._broken.get(node, -inf) >= at - BROKEN for node in nodes):
            users = self.world.users_of((revision.namespace, name))
            waits = any(not pod.spec.node_name for pod in users)
            if waits or self._waited.get(name, -inf) >= at - BROKEN:
                return "closed node"
        # a controller that has stopped, or waits for a Lease, could not do it since
        if not known.held and self._heard - known.allocated_at <= self.young:
            return "not held yet"
        return ""

    def _is_outdated(self, place: StickyPlace, known: JudgedClaim) -> bool:
        """Whether the claim was made for an earlier workload of the name: its pods get another."""
        wishes = self.wishes.get((place.pod.word, place.pod.owner), Wishes())
        return bool(known.reserved_for and wishes.listed) and (
            wishes.last.uid != known.reserved_for
        )

    def _judge_deletion(
        self, name: str, place: StickyPlace, known: JudgedClaim | None, revision: Revision
    ) -> None:
        """claimctl deletes no claim that a pod names in a LIST that began after the last change of
        the claim. A pod that came after that LIST waits, and gets the claim that is made anew.

        Without a LIST a claim goes under pods that are not bound if its ClaimReservation goes, or
        if it was made for an earlier workload.
        """
        if revision.actor not in self.users or _was_deleting(revision):
            return
        self.counts["claims deleted by claimctl"] += 1
        reservations = self.world.reservations_of((revision.namespace, name))
        needs_no_list = all(each.metadata.deleting for each in reservations) or (
            known is not None and self._is_outdated(place, known)
        )
        listed = self._listed_before(name, revision)
        for pod in self.world.users_of((revision.namespace, name)):
            done = pod.status.phase in TERMINAL or pod.metadata.deleting
            was_listed = listed is None or self._made[pod.metadata.uid] <= listed
            if not done and (pod.spec.node_name or (was_listed and not needs_no_list)):
                self._accuse(f"{name} was deleted under pod {pod.metadata.name}")

    def _listed_before(self, name: str, revision: Revision) -> int | None:
        """The revision that claimctl's last LIST of pods showed before it deleted the claim; None
        if the claim has changed since."""
        before = revision.previous_object() or {"metadata": {}}
        version = int(before["metadata"].get("resourceVersion", 0))
        lists = [it for it in self.deletions if it.claim == name and it.sent < revision.number]
        listed = max(lists, key=lambda it: (it.sent, it.listed)).listed if lists else -1
        return listed if listed >= version else None

    def _accuse(self, text: str) -> None:
        self.violations.append(text)


def _place_of(pod: Pod) -> PodPlace | None:
    """The place that the pod's labels and owner say; None if it has no ordinal."""
    owner, labels = pod.metadata.controller(), pod.metadata.labels or {}
    word = OWNERS.get(owner.kind) if owner is not None else None
    if owner is None or word is None or (index := labels.get(INDEX[word])) is None:
        return None
    workload = labels.get(SET_NAME)
    if workload is None:
        return PodPlace(word, owner.name, int(index))
    if owner.name == workload:
        return PodPlace("lws", workload, int(index))
    group = owner.name.removeprefix(f"{workload}-")
    return PodPlace("lws", workload, int(group), int(index))


def _was_deleting(revision: Revision) -> bool:
    before = revision.previous_object()
    return before is not None and bool(before["metadata"].get("deletionTimestamp"))


def _is_held(claim: ResourceClaim, place: StickyPlace) -> bool:
    """Whether the workload of the place is listed."""
    return any(each.name == place.pod.owner for each in claim.status.reserved_for)


def _allocated(claim: ResourceClaim | None) -> frozenset[tuple[str, str]]:
    results = claim.devices if claim is not None else ()
    return frozenset((result.pool, result.device) for result in results)


def _devices_of(piece: dict[str, Any] | None) -> dict[str, bool]:
    """The devices of a ResourceSlice as ``POOL/DEVICE``, and whether each is tainted."""
    if piece is None:
        return {}
    pool = piece["spec"]["pool"]["name"]
    return {
        f"{pool}/{device['name']}": bool(device.get("taints"))
        for device in piece["spec"].get("devices") or ()
    }
