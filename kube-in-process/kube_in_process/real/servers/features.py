"""The flags that a Kubernetes version needs to serve Dynamic Resource Allocation and PodGroups."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_in_process.real.servers.programs import CannotStart

_GROUPS_SINCE = _TAINT_RULES_SINCE = (1, 36)
_TAINT_RULES = "DRADeviceTaintRules"
FEATURE_FLAGS = ("--feature-gates=", "--runtime-config=")
"""The beginnings of all flags that ``ServerFeatures`` gives."""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """Feature gates for all programs, and API versions that the API server does not serve by
    default."""

    gates: dict[str, bool] = field(default_factory=dict)
    served: tuple[str, ...] = ()

    def gate_flags(self, *without: str) -> tuple[str, ...]:
        gates = {name: on for name, on in self.gates.items() if name not in without}
        pairs = ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())
        return (f"--feature-gates={pairs}",) if gates else ()

    def scheduler_flags(self) -> tuple[str, ...]:
        """The gates of the scheduler. That of 1.36.2 panics at a DeviceTaintRule of v1beta2."""
        return self.gate_flags(_TAINT_RULES)

    def api_server_flags(self) -> tuple[str, ...]:
        if not self.served:
            return self.gate_flags()
        served = ",".join(f"{version}=true" for version in self.served)
        return (*self.gate_flags(), f"--runtime-config={served}")


def features_of(
    version: tuple[int, int], *, pod_groups: bool = False, taint_rules: bool = False
) -> ServerFeatures:
    """The features to switch on for a Kubernetes version.

    DRA is on by default from 1.34. Beta APIs are off by default in every version. PodGroups for
    claims (KEP-5729) are in scheduling.k8s.io/v1alpha2 in 1.36, v1beta1 in 1.37, v1 from 1.38.
    ``taint_rules`` are DeviceTaintRules, in resource.k8s.io/v1beta2 from 1.36; older versions
    ignore that.

    Raises:
        CannotStart: PodGroups for claims are wanted, and the version has none.
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
        groups = {(1, 36): "v1alpha2", (1, 37): "v1beta1"}.get(version, "v1")
        served = (*served, f"scheduling.k8s.io/{groups}")
    if taint_rules and version >= _TAINT_RULES_SINCE:
        gates[_TAINT_RULES] = True
        served = (*served, "resource.k8s.io/v1beta2")
    return ServerFeatures(gates, served)


def resource_api(version: tuple[int, int]) -> str:
    """The newest version of resource.k8s.io that the API server serves with ``features_of``."""
    if version >= (1, 34):
        return "v1"
    return "v1beta2" if version >= (1, 33) else "v1beta1"
