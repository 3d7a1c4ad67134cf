"""claimctl.io/v1alpha1: WorkloadKind, the rule by which claimctl reads one kind of workload.

Its CRD is made from these structs.
"""

from __future__ import annotations

from typing import Annotated

from claimctl.wire.base import Wire
from claimctl.wire.limits import (
    IMMUTABLE,
    OPTIONAL,
    REQUIRED,
    Count,
    Version,
    limit,
    map_list,
    ordered_list,
    rules,
)
from claimctl.wire.meta import Condition, ObjectHeader

LONGEST_EXPRESSION = 1000
"""The most characters of an expression."""

ApiGroup = Annotated[
    str,
    limit(
        minLength=1,
        maxLength=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]
Kind = Annotated[str, limit(minLength=1, maxLength=63, pattern="^[A-Z][A-Za-z0-9]*$")]
Expression = Annotated[str, limit(maxLength=LONGEST_EXPRESSION)]
LabelKey = Annotated[
    str,
    limit(
        minLength=1,
        maxLength=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    ),
]


class ChildKind(Wire, frozen=True, kw_only=True):
    """A kind of the objects that a workload makes."""

    group: Annotated[ApiGroup, REQUIRED] = ""
    """The API group of the kind."""
    kind: Annotated[Kind, REQUIRED] = ""
    """The kind, like Job."""


class Ordinals(Wire, frozen=True, kw_only=True):
    """The labels that tell the pods of a kind apart. With them, each pod may have a sticky claim
    (claimctl.io/sticky)."""

    labels: Annotated[tuple[LabelKey, ...], REQUIRED, ordered_list(1, 2)] = ()
    """The labels of a pod whose values, whole numbers, say which one it is: one, or that of its
    group and that of its place in the group. The workload controls its pods itself."""
    counts: Annotated[tuple[Expression, ...], ordered_list(0, 2)] = ()
    """How many values each label has, counted from 0, an integer each, like self.spec.replicas. A
    pod with a higher one is not wanted now. Empty means unknown: then every pod is wanted."""


class WorkloadKindSpec(Wire, frozen=True, kw_only=True):
    """The rule. Its expressions are CEL over 'self', the workload. An expression that fails, or
    whose value is not of the expected type, decides nothing: then claims stay held."""

    group: Annotated[ApiGroup, REQUIRED, rules((IMMUTABLE, "group is immutable"))] = ""
    """The API group of the kind, like jobset.x-k8s.io. Immutable."""
    kind: Annotated[Kind, REQUIRED, rules((IMMUTABLE, "kind is immutable"))] = ""
    """The kind, like JobSet. Immutable."""
    idle: Expression = ""
    """True while a workload wants no pods and may want some later, like
    'has(self.spec.suspend) && self.spec.suspend'. Empty means never."""
    ended: Expression = ""
    """True when a workload will never make pods again, like self.status.phase == 'Succeeded'.
    Empty means never: then only its deletion ends it."""
    pods: Expression = ""
    """How many pods a workload wants at the same time, an integer. Empty means unknown."""
    children: Annotated[tuple[ChildKind, ...], map_list("group", "kind", most=16)] = ()
    """The kinds between the workload and its pods. Before claimctl releases a claim of a workload
    that has ended or is gone, it looks whether objects of these kinds are left."""
    copies_annotations: bool = False
    """Whether the kind's controller copies the annotations of a workload to the objects that it
    makes. Then claimctl ignores its annotations on all objects below the workload."""
    replaces_pods: bool = False
    """Whether the kind's controller makes a new pod for each of its pods that is deleted, and
    leaves the others alone: then 'claimctl reschedule' may move them."""
    ordinals: Ordinals | None = None
    """For a kind whose pods have ordinals; without effect for the kinds of apps and batch."""


class WorkloadKindStatus(Wire, frozen=True, kw_only=True):
    """What the controller has found."""

    observed_generation: Annotated[Count, OPTIONAL] = 0
    """The generation of the spec that the status belongs to."""
    served: bool = False
    """Whether the cluster serves the kind."""
    version: Version = ""
    """The version in which the controller reads the kind."""
    permitted: bool = False
    """Whether the controller may get, list and watch objects of the kind."""
    conditions: Annotated[tuple[Condition, ...], map_list("type", most=16)] = ()
    """Ready: whether claims are held for workloads of the kind by this rule."""


class WorkloadKind(ObjectHeader, frozen=True, kw_only=True):
    """WorkloadKind tells claimctl when workloads of one kind want pods, are idle, or have ended.
    Its name is that of the kind's CustomResourceDefinition: plural.group."""

    spec: Annotated[WorkloadKindSpec, REQUIRED] = WorkloadKindSpec()
    status: WorkloadKindStatus = WorkloadKindStatus()
