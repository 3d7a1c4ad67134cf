"""How Go's structs look in errors that quote them: field names of the internal types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claimctl.embedded.errors import quoted

Struct = Mapping[str, "Struct | str | int | None"]
"""Go names of a struct's fields in order, each with the struct below it, with its zero value, or
with None where it is null when it is not set."""

_SELECTOR: Struct = {"CEL": {"Expression": ""}}
_CAPACITY: Struct = {"Requests": None}
_REQUEST: Struct = {
    "DeviceClassName": "",
    "Selectors": _SELECTOR,
    "AllocationMode": "",
    "Count": 0,
    "AdminAccess": None,
    "Tolerations": None,
    "Capacity": _CAPACITY,
}
_SUBREQUEST: Struct = {
    "Name": None,
    "DeviceClassName": "",
    "Selectors": _SELECTOR,
    "AllocationMode": "",
    "Count": 0,
    "Tolerations": None,
    "Capacity": _CAPACITY,
}
_CONFIG: Struct = {"Requests": None, "Opaque": {"Driver": "", "Parameters": None}}
CLAIM_SPEC: Struct = {
    "Devices": {
        "Requests": {"Name": "", "Exactly": _REQUEST, "FirstAvailable": _SUBREQUEST},
        "Constraints": {"Requests": None, "MatchAttribute": None, "DistinctAttribute": None},
        "Config": _CONFIG,
    }
}
_TERM: Struct = {"Key": "", "Operator": "", "Values": None}
ALLOCATION: Struct = {
    "Devices": {
        "Results": {
            "Request": "",
            "Driver": "",
            "Pool": "",
            "Device": "",
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
STATUS_DEVICE: Struct = {"Driver": "", "Pool": "", "Device": "", "ShareID": ""}
LABEL_SELECTOR: Struct = {
    "matchLabels": None,
    "matchExpressions": {"key": None, "operator": None, "values": None},
}


def go_text(value: Any, struct: Struct | str | int | None) -> str:
    """A value of the API as Go shows the internal struct; what is not set is null or zero."""
    if isinstance(struct, (str, int)):
        return quoted(struct if value is None else value)
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
