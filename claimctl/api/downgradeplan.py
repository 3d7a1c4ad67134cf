"""DowngradePlan: replaces workload references by pod references before a downgrade."""

from __future__ import annotations

from typing import Annotated, Literal

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


class ClaimName(Model):
    """The name of one claim."""

    namespace: LabelName
    """The claim's namespace."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """The claim's name."""


class DowngradePlanSpec(Model):
    """The desired downgrade. While the plan exists, claimctl adds no workload references."""

    action: Annotated[str, Field(json_schema_extra={"enum": ["Prepare", "Restore"]})] | None = None
    """Prepare replaces workload references by pod references. Restore adds the replaced workload
    references again, and ends the freeze. Absent means Prepare."""
    namespaces: Annotated[
        tuple[LabelName, ...], Field(max_length=MAX_ITEMS, json_schema_extra=set_list())
    ] = ()
    """The namespaces whose claims are expanded. Empty means all namespaces."""
    claim_selector: Annotated[str, Field(max_length=4096)] = ""
    """A label selector of the claims that are expanded, like team=ml. Empty means all claims of
    the namespaces."""
    skip: Annotated[
        tuple[ClaimName, ...],
        Field(max_length=MAX_ITEMS, json_schema_extra=map_list("namespace", "name")),
    ] = ()
    """Claims that stay as they are, with their workload references."""
    parallelism: (
        Annotated[int, Field(ge=0, le=64, json_schema_extra={"format": "int64"})] | None
    ) = None
    """How many claims are written at a time. 0 or absent means 8."""


class DowngradedClaim(Model):
    """The result for one claim, with what is needed to undo it."""

    namespace: Annotated[str, Field(max_length=63)]
    """The claim's namespace."""
    name: ObjectName
    """The claim's name."""
    uid: Uid = ""
    """The claim's UID."""
    state: Word = ""
    """Pending, Expanded, Unchanged, Refused, Failed, Skipped, Restored or NotRestored."""
    reason: Word = ""
    """Why, in one word for programs."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """Why, and what would have to change, for people."""
    pods: Count = 0
    """How many pods the claim lists now, or would have to list."""
    workload_references: Annotated[
        tuple[Reference, ...], Field(max_length=256, json_schema_extra=map_list("uid"))
    ] = ()
    """The references other than pods' that the claim lists, or that the plan replaced."""
    replaced_references: Annotated[
        tuple[Reference, ...], Field(max_length=256, json_schema_extra=map_list("uid"))
    ] = ()
    """The workloadReferences that the plan replaced by pod references. While the state is Pending,
    the plan is about to replace them."""
    resource_version: Annotated[str, Field(max_length=64)] = ""
    """The resourceVersion of the claim that the replacing write carries."""


class DowngradePlanStatus(Model):
    """The progress of the plan."""

    observed_generation: Count | None = None
    """The generation of the spec that the status belongs to."""
    phase: Word = ""
    """Frozen, Expanding, Prepared, Blocked, Failed, Restoring, Restored or PartlyRestored."""
    total: Count = 0
    """How many claims the plan concerns."""
    done: Count = 0
    """How many of them are finished."""
    claims: Annotated[
        tuple[DowngradedClaim, ...],
        Field(max_length=MAX_ITEMS, json_schema_extra=map_list("namespace", "name")),
    ] = ()
    """The result for each claim."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=map_list("type"))
    ] = ()
    """The plan's conditions."""


class PlanMeta(Model):
    """Standard metadata; the API server knows its schema."""

    model_config = ConfigDict(extra="allow")

    name: Literal["claimctl"]


class DowngradePlan(Model):
    """DowngradePlan freezes reservations and replaces workload references by pod references, so
    that an administrator can switch the cluster's reservation feature off while pods run."""

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
