"""How Go's structs look in errors that quote them: field names of the internal types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claimctl.embedded.errors import quoted

Struct = Mapping[str, "Struct | None"]
"""Go names of a struct's fields in order, each with the struct below it (None for the rest)."""

_SELECTOR: Struct = {"CEL": {"Expression": None}}
_CAPACITY: Struct = {"Requests": None}
_REQUEST: Struct = {
    "DeviceClassName": None,
    "Selectors": _SELECTOR,
    "AllocationMode": None,
    "Count": None,
    "AdminAccess": None,
    "Tolerations": None,
    "Capacity": _CAPACITY,
}
_SUBREQUEST: Struct = {
    "Name": None,
    "DeviceClassName": None,
    "Selectors": _SELECTOR,
    "AllocationMode": None,
    "Count": None,
    "Tolerations": None,
    "Capacity": _CAPACITY,
}
CLAIM_SPEC: Struct = {
    "Devices": {
        "Requests": {"Name": None, "Exactly": _REQUEST, "FirstAvailable": _SUBREQUEST},
        "Constraints": {"Requests": None, "MatchAttribute": None, "DistinctAttribute": None},
        "Config": None,
    }
}
_TERM: Struct = {"Key": None, "Operator": None, "Values": None}
ALLOCATION: Struct = {
    "Devices": {
        "Results": {
            "Request": None,
            "Driver": None,
            "Pool": None,
            "Device": None,
            "AdminAccess": None,
            "Tolerations": None,
            "BindingConditions": None,
            "BindingFailureConditions": None,
            "ShareID": None,
            "ConsumedCapacity": None,
        },
        "Config": None,
    },
    "NodeSelector": {"NodeSelectorTerms": {"MatchExpressions": _TERM, "MatchFields": _TERM}},
    "AllocationTimestamp": None,
}
LABEL_SELECTOR: Struct = {
    "matchLabels": None,
    "matchExpressions": {"key": None, "operator": None, "values": None},
}


def go_text(value: Any, struct: Struct | None) -> str:
    """A value of the API as Go shows the internal struct; what is not set is null."""
    if struct is None or value is None:
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(go_text(each, struct) for each in value)}]"
    fields = []
    for name, below in struct.items():
        fields.append(f'"{name}":{go_text(value.get(_wire_name(name)), below)}')
    return f"{{{','.join(fields)}}}"


def _wire_name(name: str) -> str:
    if name.isupper():
        return name.lower()
    return name[0].lower() + name[1:]
