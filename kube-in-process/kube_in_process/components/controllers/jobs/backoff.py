"""How long a Job waits after failures before it creates the next pod: 10 s, 20 s, 40 s..."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kube_in_process.components.objects import condition
from kube_in_process.objects import Object
from kube_in_process.text.times import timestamp

LONGEST = 600.0


def finished_at(pod: Object) -> str:
    """When a pod ended: the end of its last container; else the time since which it is not ready;
    else its deletion; else its creation (k8s.io/kubernetes/pkg/controller/job, getFinishedTime)."""
    times = [
        status["state"]["terminated"]["finishedAt"]
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
    ]
    if times:
        return str(max(times))
    unready = condition(pod, "Ready")
    if unready is not None and unready["status"] == "False" and unready.get("lastTransitionTime"):
        return str(unready["lastTransitionTime"])
    metadata = pod["metadata"]
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
        return timestamp(datetime.fromisoformat(metadata["deletionTimestamp"]) - grace)
    return str(metadata["creationTimestamp"])


@dataclass(frozen=True, slots=True)
class Backoff:
    """The number of failures since the last success, and the time of the last failure."""

    failures: int = 0
    last: str = ""

    def after(self, succeeded: list[str], failed: list[str]) -> Backoff:
        """The backoff after further pods ended at these times."""
        if not succeeded:
            return Backoff(self.failures + len(failed), max([self.last, *failed]))
        later = [pod for pod in failed if pod >= max(succeeded)]
        return Backoff(len(later), max(later, default=""))

    def remaining(self, first: float, now: str) -> float:
        return remaining(self.failures, self.last, first, now)


def remaining(failures: int, last: str, first: float, now: str) -> float:
    """Seconds left of the pause after ``failures`` failures; ``first`` is the first pause."""
    if not failures or not last:
        return 0.0
    pause = min(first * 2.0 ** (failures - 1), LONGEST)
    since = (datetime.fromisoformat(now) - datetime.fromisoformat(last)).total_seconds()
    return max(pause - since, 0.0)
