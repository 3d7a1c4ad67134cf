"""Shared by all kinds: the base model, names with their limits, conditions, references.

``kubectl explain`` prints the docstrings of the models. The limits keep objects small enough for
etcd, and let the API server estimate the cost of the CEL rules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "claimctl.io"
VERSION = "v1alpha1"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
MAX_ITEMS = 5000
TEN_YEARS = 10 * 365 * 24 * 3600

SubdomainName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")
]
"""DNS subdomain (RFC 1123): the API server's rule for names of claims, templates, workloads."""
LabelName = Annotated[str, Field(min_length=1, max_length=63, pattern=f"^{_LABEL}$")]
"""DNS label (RFC 1123): the API server's rule for names of namespaces."""
ObjectName = Annotated[str, Field(max_length=253)]
Uid = Annotated[str, Field(max_length=128)]
Word = Annotated[str, Field(max_length=63)]
Seconds = Annotated[int, Field(ge=0, le=TEN_YEARS, json_schema_extra={"format": "int64"})]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


def map_list(*keys: str) -> dict[str, Any]:
    """Schema extensions of a list whose items are identified by ``keys``."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def set_list() -> dict[str, Any]:
    return {"x-kubernetes-list-type": "set"}


def atomic_list() -> dict[str, Any]:
    """Schema extensions of a list that has one writer, who replaces it as a whole."""
    return {"x-kubernetes-list-type": "atomic"}


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Schema extensions with CEL rules, given as pairs (rule, message)."""
    return {
        "x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]
    }


IMMUTABLE = "self == oldSelf"


class Model(BaseModel):
    """Immutable, camelCase in JSON, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


class Reference(Model):
    """An entry of a ResourceClaim's status.reservedFor."""

    api_group: ObjectName = ""
    """The API group of the object; empty for the core group."""
    resource: Annotated[str, Field(max_length=253)]
    """The plural name of the object's resource, like deployments."""
    name: ObjectName
    """The name of the object."""
    uid: Uid
    """The UID of the object."""


_QUALIFIED = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
"""The limits and patterns of conditions are those of metav1.Condition."""


class Condition(Model):
    """One aspect of the object's current state."""

    type: Annotated[str, Field(max_length=316, pattern=_QUALIFIED)]
    """The type of the condition."""
    status: Annotated[str, Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})]
    """Whether the condition is true: True, False or Unknown."""
    observed_generation: Count | None = None
    """The generation of the spec that the condition belongs to."""
    last_transition_time: datetime
    """When the status last changed."""
    reason: Annotated[
        str,
        Field(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ]
    """The reason for the status, in one word for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """The reason for the status, in one line for people."""
