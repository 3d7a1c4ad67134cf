"""Habits of a driver as a process: it is not there, it is slow, it looks at containers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kube_in_process.habits.habit import PREPARE, Habit
from kube_in_process.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Away(Habit):
    """It is not there: kubelets have it not registered, and withdraw its slices after 30 s.

    Seen with every driver that was tried, while its pod is replaced. The text of the kubelet is
    'DRA driver ... is not registered' (k8s.io/kubernetes 1.36, pkg/kubelet/cm/dra/manager.go).
    """

    name = "away"

    def is_there(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(Habit):
    """It takes its time to prepare and to unprepare.

    Read in NVIDIA's dra-driver-nvidia-gpu, main in September 2026: a call is tried again for up to
    45 s before it is answered (cmd/compute-domain-kubelet-plugin/driver.go, ErrorRetryMaxTimeout).
    """

    name = "slow"
    prepare_seconds: float = 20.0
    unprepare_seconds: float = 20.0

    def seconds(self, verb: str) -> float:
        return self.prepare_seconds if verb == PREPARE else self.unprepare_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusesASecondPod(Habit):
    """It lets no container of a second pod be created that uses the same claim on a node.

    Seen with dra-driver-cpu de98098 (pkg/store/claim_tracker.go), by NRI: the prepare succeeds.
    The text is the driver's.
    """

    name = "refuses-a-second-pod"
    needs_nri = True

    def refuses_container(self, claim: Object, pod: str, pods: Collection[str]) -> str:
        first = next((other for other in pods if other != pod), "")
        if not first:
            return ""
        uid = claim["metadata"]["uid"]
        return f'claimUID "{uid}" already bound to pod "{first}"'
