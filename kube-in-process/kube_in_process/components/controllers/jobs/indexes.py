"""The completion indexes of an Indexed Job: which are done, failed, busy or free.

The rules are those of k8s.io/kubernetes/pkg/controller/job (indexed_job_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kube_in_process.components.objects import annotations_of
from kube_in_process.objects import Object

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def index_of(pod: Object) -> int:
    """The completion index of a pod; -1 without a valid one."""
    index = annotations_of(pod).get(INDEX, "")
    return int(index) if index.isdigit() else -1


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def valid(job: Object, pod: Object) -> bool:
    """Whether the pod has an index that the Job wants."""
    return 0 <= index_of(pod) < int(job["spec"]["completions"])


def by_index(job: Object) -> bool:
    """Whether failures are counted for each index (``backoffLimitPerIndex``)."""
    return job["spec"].get("backoffLimitPerIndex") is not None


def failures_of(pod: Object) -> int:
    return int(annotations_of(pod).get(FAILURES, "0"))


def ignored_of(pod: Object) -> int:
    return int(annotations_of(pod).get(IGNORED, "0"))


def parsed(text: str) -> set[int]:
    """The numbers of a text like '0-2,5'."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def ranges(numbers: Iterable[int]) -> str:
    """The text for numbers: '0-2,5' for 0, 1, 2 and 5; '0,1' for 0 and 1."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(_range(part) for part in parts)


def _range(part: list[int]) -> str:
    if len(part) == 1:
        return str(part[0])
    return f"{part[0]}{',' if len(part) == 2 else '-'}{part[-1]}"


def success_rule(policy: Mapping[str, Any] | None, succeeded: set[int]) -> int | None:
    """The number of the first rule of a ``successPolicy`` that is met."""
    if not policy or not succeeded:
        return None
    for number, rule in enumerate(policy["rules"]):
        among = succeeded
        wanted = rule.get("succeededCount")
        if rule.get("succeededIndexes") is not None:
            asked = parsed(rule["succeededIndexes"])
            among = succeeded & asked
            wanted = len(asked) if wanted is None else wanted
        if wanted is not None and len(among) >= wanted:
            return number
    return None
