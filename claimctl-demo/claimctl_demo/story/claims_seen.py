"""The life of each claim by the server's history: who held it, who released it, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_in_process.storage.store import Revision

from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import TOMBSTONE_GROUP
from claimctl_demo.story.acts import who
from claimctl_demo.story.documents import PlayedClaim
from claimctl_witness.witness import Witness
from claimctl_witness.world import Key, World

_KEEPS = frozenset({"Manual"})


@dataclass(slots=True)
class ClaimSeen:
    """One claim. ``released_by`` is "" while the claim is held, or if it was never allocated."""

    namespace: str
    name: str
    devices: tuple[str, ...] = ()
    pods: dict[str, None] = field(default_factory=dict)
    """Names of the pods that were started on the claim."""
    most_pods: int = 0
    """The largest number of pods that were listed at the same time."""
    workloads: dict[str, None] = field(default_factory=dict)
    idle: str = ""
    """The state while its workloads were scaled to 0; "" if not observed."""
    allocated: bool = False
    """Whether the claim is allocated at the end."""
    released_by: str = ""
    reason: str = ""
    refused: str = ""
    """Why its ClaimReservation does not hold the claim; "" if it does, or if there is none."""

    def document(self) -> PlayedClaim:
        return PlayedClaim(
            namespace=self.namespace,
            name=self.name,
            devices=tuple(self.devices),
            pods=tuple(self.pods),
            most_pods_listed=self.most_pods,
            workloads=tuple(self.workloads),
            while_idle=self.idle,
            allocated=self.allocated,
            released_by=self.released_by,
            reason=self.reason,
            not_reserved=self.refused,
        )

    def line(self) -> str:
        return f"claim {self.namespace}/{self.name}: {self._held()}; {self._released()}"

    def _held(self) -> str:
        if not self.devices:
            return "was never allocated"
        holders = [f"{len(self.pods)} pod{'s'[: len(self.pods) != 1]}"] if self.pods else []
        idle = f", {self.idle} while scaled to zero" if self.idle else ""
        refused = f", not reserved ({self.refused})" if self.refused else ""
        by = " and ".join([*holders, *self.workloads]) or "nobody"
        return f"{', '.join(self.devices)} held by {by}{refused}{idle}"

    def _released(self) -> str:
        if self.allocated:
            return f"still allocated at the end{f' ({self.reason})' if self.reason else ''}"
        if not self.released_by:
            return "nothing to release"
        return f"released by {self.released_by}{f' ({self.reason})' if self.reason else ''}"


@dataclass(slots=True)
class Observer:
    seen: dict[Key, ClaimSeen] = field(default_factory=dict)
    retention: dict[Key, str] = field(default_factory=dict)
    refusals: dict[Key, str] = field(default_factory=dict)
    """By claim: why its ClaimReservation did not hold it while pods ran."""
    reasons: dict[Key, str] = field(default_factory=dict)
    """By claim: the reason of the last release that a ClaimReservation reported."""

    def notice(self, revision: Revision, world: World) -> None:
        key = (revision.namespace, revision.name)
        if revision.plural == "resourceclaims" and key in world.claims:
            self._notice_claim(key, world.claims[key])
        elif revision.plural == "claimreservations" and key in world.reservations:
            reservation = world.reservations[key]
            claim = (revision.namespace, reservation.spec.resource_claim_name)
            self.retention[claim] = reservation.spec.retention_policy
            if reservation.status.release is not None:
                self.reasons[claim] = reservation.status.release.reason

    def _notice_claim(self, key: Key, claim: ResourceClaim) -> None:
        seen = self.seen.setdefault(key, ClaimSeen(*key))
        listed = [each for each in claim.status.reserved_for if each.resource == "pods"]
        seen.most_pods = max(seen.most_pods, len(listed))
        for each in claim.status.reserved_for:
            if each.resource == "pods":
                seen.pods[each.name] = None
            elif each.api_group != TOMBSTONE_GROUP:
                seen.workloads[f"{each.resource}/{each.name}"] = None

    def note_running(self, world: World) -> None:
        """Note what ClaimReservations report while everything runs."""
        for reservation in world.reservations.values():
            key = (reservation.metadata.namespace, reservation.spec.resource_claim_name)
            for one in reservation.status.conditions:
                if one.type == "Reserved" and one.status == "False":
                    self.refusals[key] = one.reason

    def note_idle(self, world: World) -> None:
        """Note the state of held claims while no pod exists."""
        for key, seen in self.seen.items():
            claim = world.claims.get(key)
            if seen.workloads and not world.users_of(key):
                held = claim is not None and claim.status.allocation is not None
                seen.idle = "kept" if held else "not kept"

    def stays(self, claim: ResourceClaim) -> bool:
        """Whether only a user can release the claim."""
        key = (claim.metadata.namespace, claim.metadata.name)
        return self.retention.get(key) in _KEEPS

    def claims(self, witness: Witness, world: World) -> list[ClaimSeen]:
        """All claims of the history, by namespace and name."""
        for key, seen in self.seen.items():
            claim = world.claims.get(key)
            seen.devices = witness.devices.get(key, ())
            seen.refused = "" if seen.workloads else self.refusals.get(key, "")
            seen.allocated = claim is not None and claim.status.allocation is not None
            if seen.allocated:
                policy = self.retention.get(key, "")
                seen.reason = f"retentionPolicy {policy}" if policy in _KEEPS else ""
            elif key in witness.deallocations:
                seen.released_by = who(witness.deallocations[key])
                ours = seen.released_by == "claimctl"
                seen.reason = self.reasons.get(key, "") if ours else "the last pod was gone"
        return [self.seen[key] for key in sorted(self.seen)]
