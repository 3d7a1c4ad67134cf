"""Which flags a Kubernetes version needs to serve Dynamic Resource Allocation, and PodGroups."""

from __future__ import annotations

from dataclasses import dataclass, field

from claimctl.controlplane.programs import CannotStart

_GROUPS_SINCE = (1, 36)


@dataclass(frozen=True, slots=True)
class Features:
    """Feature gates of all programs, and the API versions that the API server has to serve."""

    gates: dict[str, bool] = field(default_factory=dict)
    served: tuple[str, ...] = ()

    def gate_flags(self) -> tuple[str, ...]:
        if not self.gates:
            return ()
        pairs = ",".join(f"{name}={str(on).lower()}" for name, on in self.gates.items())
        return (f"--feature-gates={pairs}",)

    def api_server_flags(self) -> tuple[str, ...]:
        if not self.served:
            return self.gate_flags()
        served = ",".join(f"{version}=true" for version in self.served)
        return (*self.gate_flags(), f"--runtime-config={served}")


def features_of(version: tuple[int, int], *, pod_groups: bool = False) -> Features:
    """What to switch on. DRA is on by default from 1.34, and a beta API never is.

    PodGroups for claims (KEP-5729) are in v1alpha2 of scheduling.k8s.io in 1.36, and in v1beta1
    from 1.37 on.

    Raises:
        CannotStart: the version has no PodGroups for claims.
    """
    gates: dict[str, bool] = {}
    served: tuple[str, ...] = ()
    if version < (1, 34):
        gates["DynamicResourceAllocation"] = True
        betas = ("v1beta1",) if version < (1, 33) else ("v1beta1", "v1beta2")
        served = tuple(f"resource.k8s.io/{beta}" for beta in betas)
    if pod_groups:
        if version < _GROUPS_SINCE:
            raise CannotStart(
                f"Kubernetes {version[0]}.{version[1]} has no PodGroups for claims; "
                "1.36 or newer is needed"
            )
        gates |= {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
        alpha = version < (1, 37)
        served = (*served, f"scheduling.k8s.io/{'v1alpha2' if alpha else 'v1beta1'}")
    return Features(gates, served)


def resource_api(version: tuple[int, int]) -> str:
    """The newest version of resource.k8s.io that ``features_of`` has served."""
    if version >= (1, 34):
        return "v1"
    return "v1beta2" if version >= (1, 33) else "v1beta1"
