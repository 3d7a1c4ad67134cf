"""Counting the pods of a Job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from claimctl.embedded.components.objects import (
    annotations_of,
    condition,
    deleting,
    finalizers,
    is_true,
    uid,
)
from claimctl.embedded.components.pods import ended, phase
from claimctl.embedded.views import Object

Pods = tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """The pods of a Job by what they are to it.

    ``new_succeeded`` and ``new_failed`` still carry the tracking finalizer, so that the counters
    in the status do not have them yet.
    """

    active: Pods
    terminating: Pods
    succeeded: Pods
    failed: Pods
    new_succeeded: Pods
    new_failed: Pods
    counted_succeeded: int
    counted_failed: int

    @property
    def total_succeeded(self) -> int:
        return self.counted_succeeded + len(self.new_succeeded)

    @property
    def total_failed(self) -> int:
        return self.counted_failed + len(self.new_failed)

    def uncounted(self) -> Object:
        found = {
            "succeeded": [uid(pod) for pod in self.new_succeeded],
            "failed": [uid(pod) for pod in self.new_failed],
        }
        return {key: value for key, value in found.items() if value}

    def completed(self, index: str) -> list[int]:
        """Indexes of the pods that succeeded."""
        return sorted({int(annotations_of(pod).get(index, "0")) for pod in self.succeeded})

    def with_created(self, pods: Iterable[Object]) -> Counted:
        return replace(self, active=(*self.active, *pods))


def count(job: Object, pods: Iterable[Object], finalizer: str) -> Counted:
    """A pod that is being deleted has failed; with the policy Failed, only once it has ended."""
    status = job.get("status") or {}
    when_ended = job["spec"].get("podReplacementPolicy") == "Failed"
    found = tuple(pods)
    succeeded = tuple(pod for pod in found if phase(pod) == "Succeeded")
    failed = tuple(
        pod
        for pod in found
        if phase(pod) == "Failed" or (deleting(pod) and not ended(pod) and not when_ended)
    )
    return Counted(
        active=tuple(pod for pod in found if not ended(pod) and not deleting(pod)),
        terminating=tuple(pod for pod in found if deleting(pod) and not ended(pod)),
        succeeded=succeeded,
        failed=failed,
        new_succeeded=tuple(pod for pod in succeeded if finalizer in finalizers(pod)),
        new_failed=tuple(pod for pod in failed if finalizer in finalizers(pod)),
        counted_succeeded=status.get("succeeded", 0),
        counted_failed=status.get("failed", 0),
    )


def condition_of(job: Object, kind: str) -> Object | None:
    """A condition that is True; of Suspended in either state."""
    found = condition(job, kind)
    return found if kind == "Suspended" or is_true(job, kind) else None


def indexes(job: Object, counted: Counted, annotation: str) -> list[int] | None:
    """Indexes without a pod, lowest first; None for a Job that is not Indexed."""
    if job["spec"].get("completionMode") != "Indexed":
        return None
    taken = set(counted.completed(annotation))
    taken |= {int(annotations_of(pod).get(annotation, "-1")) for pod in counted.active}
    return [each for each in range(job["spec"]["completions"]) if each not in taken]


def ranges(numbers: list[int]) -> str:
    """'0-2,5' for 0, 1, 2 and 5."""
    parts: list[list[int]] = []
    for each in numbers:
        if parts and each == parts[-1][-1] + 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
