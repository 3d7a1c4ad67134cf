"""The keys of the work queues: names of objects, not the objects."""

from __future__ import annotations

from typing import NamedTuple


class ClaimKey(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WorkloadKey(NamedTuple):
    """A workload by its API group and kind (``apps``, ``Deployment``) and its name."""

    api_group: str
    kind: str
    namespace: str
    name: str


class GroupKey(NamedTuple):
    """A PodGroup by its name, whether it exists or not."""

    namespace: str
    name: str


class PlanKey(NamedTuple):
    name: str


def namespace_of(key: ClaimKey | WorkloadKey | GroupKey | PlanKey) -> str:
    """The namespace of a key's object; '' if it has none."""
    return "" if isinstance(key, PlanKey) else key.namespace
