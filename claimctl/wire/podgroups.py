"""scheduling.k8s.io: the fields of PodGroups that concern claims (KEP-5729)."""

from __future__ import annotations

from claimctl.wire.base import Present, Wire
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.pods import PodResourceClaim
from claimctl.wire.reservations import MANAGED_LABEL

MAX_CLAIMS = 4
"""The most claims that a PodGroup may have."""


class SchedulingPolicy(Wire, frozen=True, kw_only=True):
    gang: Present | None = None
    """Set if pods of the group are bound only together."""


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    scheduling_policy: SchedulingPolicy | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    """A pod shares a claim of the group if its own entry has the same name and source."""


class PodGroup(ObjectHeader, frozen=True, kw_only=True):
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def made_by_claimctl(self) -> bool:
        """Whether claimctl created the group, by its label."""
        return (self.metadata.labels or {}).get(MANAGED_LABEL) == "claimctl"

    def shares(self, claim: str) -> bool:
        """Whether the group's spec names the claim. A pod of the group shares it if the pod has an
        entry for it, too (see ``PodGroupSpec``)."""
        return any(entry.resource_claim_name == claim for entry in self.spec.resource_claims)
