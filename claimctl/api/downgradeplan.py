"""DowngradePlan: workload references on their way to pod references."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from claimctl.api.common import (
    MAX_ITEMS,
    Condition,
    Count,
    LabelName,
    Model,
    ObjectName,
    Reference,
    Uid,
    Word,
    map_list,
    rules,
    set_list,
)
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME


class DowngradePlanSpec(Model):
    """What is wanted. While the plan exists, no workload reference is added."""

    namespaces: Annotated[
        tuple[LabelName, ...], Field(max_length=MAX_ITEMS, json_schema_extra=set_list())
    ] = ()
    """The namespaces whose claims are expanded; empty means all."""


class DowngradedClaim(Model):
    """What was done with one claim, and what is needed to undo it."""

    namespace: Annotated[str, Field(max_length=63)]
    """The claim's namespace."""
    name: ObjectName
    """The claim's name."""
    uid: Uid = ""
    """The claim's UID."""
    state: Word = ""
    """Pending, Expanded, Unchanged, Refused or Failed."""
    reason: Word = ""
    """Why, in one word for programs."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """Why, and what would have to change, for people."""
    pods: Count = 0
    """How many pods are listed now, or would have to be."""
    workload_references: Annotated[
        tuple[Reference, ...], Field(max_length=256, json_schema_extra=map_list("uid"))
    ] = ()
    """The references other than pods' that the claim listed when it was looked at, or lost to the
    plan."""
    replaced_references: Annotated[
        tuple[Reference, ...], Field(max_length=256, json_schema_extra=map_list("uid"))
    ] = ()
    """Those of them that were replaced by references of pods; while the state is Pending, those
    that are about to be."""
    resource_version: Annotated[str, Field(max_length=64)] = ""
    """The version of the claim that they were replaced in, or are about to be."""


class DowngradePlanStatus(Model):
    """How far the plan has come."""

    observed_generation: Count | None = None
    """The generation of the spec that the status speaks of."""
    phase: Word = ""
    """Frozen, Expanding, Prepared, Blocked or Failed."""
    total: Count = 0
    """How many claims have to be looked at."""
    done: Count = 0
    """How many of them have been."""
    claims: Annotated[
        tuple[DowngradedClaim, ...],
        Field(max_length=MAX_ITEMS, json_schema_extra=map_list("namespace", "name")),
    ] = ()
    """What was done with each claim."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=map_list("type"))
    ] = ()
    """The plan's conditions."""


class PlanMeta(Model):
    """Standard metadata; the API server knows its schema."""

    model_config = ConfigDict(extra="allow")

    name: Literal["claimctl"]


class DowngradePlan(Model):
    """DowngradePlan freezes reservations and turns workload references into pod references, so that
    the cluster's reservation feature can be switched off under running pods."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                f"self.metadata.name == '{DOWNGRADE_PLAN_NAME}'",
                f"there is one DowngradePlan at a time, and its name is {DOWNGRADE_PLAN_NAME}",
            )
        )
    )

    api_version: Literal["claimctl.io/v1alpha1"] = "claimctl.io/v1alpha1"
    kind: Literal["DowngradePlan"] = "DowngradePlan"
    metadata: PlanMeta
    spec: DowngradePlanSpec = DowngradePlanSpec()
    status: DowngradePlanStatus | None = None


PRINTER_COLUMNS: list[dict[str, Any]] = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Done", "type": "integer", "jsonPath": ".status.done"},
    {"name": "Total", "type": "integer", "jsonPath": ".status.total"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
