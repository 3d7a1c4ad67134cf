"""What the schemas of claimctl's own kinds say about a field beside its type.

The API server checks the limits, and the structs do not: a controller reads also what a later
release has stored. The limits keep objects small enough for etcd, and let the API server estimate
the cost of CEL rules. ``kubectl explain`` prints the docstrings of structs and fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from claimctl.wire.times import Span

PRESENCE = "presence"
"""The keyword that says whether an object may lack the field: ``REQUIRED``, ``OPTIONAL``. Without
it, the server fills in the struct's default."""
WHOLE = "whole"
"""The keyword of a text that may not be shortened to fit (``wire.fitted``). No schema shows these
two: they are claimctl's own."""


def limit(**schema: Any) -> Meta:
    """Keywords of the field's schema."""
    return Meta(extra_json_schema=schema)


def whole(**schema: Any) -> Meta:
    """The same for a name or a UID, which means nothing when it is shortened."""
    return limit(**{WHOLE: True}, **schema)


REQUIRED = limit(**{PRESENCE: "required"})
"""The server refuses an object without the field, although the struct has a default for it."""
OPTIONAL = limit(**{PRESENCE: "optional"})
"""The server does not fill in the struct's default."""
MAX_ITEMS = 5000
TEN_YEARS = 10 * 365 * 24 * 3600
IMMUTABLE = "self == oldSelf"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

SubdomainName = Annotated[
    str, whole(minLength=1, maxLength=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")
]
"""DNS subdomain (RFC 1123): the API server's rule for names of claims, templates, workloads."""
LabelName = Annotated[str, whole(minLength=1, maxLength=63, pattern=f"^{_LABEL}$")]
"""DNS label (RFC 1123): the API server's rule for names of namespaces."""
ObjectName = Annotated[str, whole(maxLength=253)]
Uid = Annotated[str, whole(maxLength=128)]
Version = Annotated[str, whole(maxLength=64)]
"""A resourceVersion."""
Word = Annotated[str, limit(maxLength=63)]
Count = Annotated[int, limit(minimum=0, format="int64")]
Seconds = Annotated[Span, limit(minimum=0, maximum=TEN_YEARS, format="int64")]
Time = Annotated[datetime, limit(format="date-time")]


def map_list(*keys: str, most: int = MAX_ITEMS) -> Meta:
    """A list whose items are identified by ``keys``, so that several writers can change it."""
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return limit(maxItems=most, **kind)


def set_list() -> Meta:
    """A list of distinct values."""
    return limit(maxItems=MAX_ITEMS, **{"x-kubernetes-list-type": "set"})


def ordered_list(least: int, most: int) -> Meta:
    """A list whose order counts, so that one writer at a time changes the whole of it."""
    return limit(minItems=least, maxItems=most, **{"x-kubernetes-list-type": "atomic"})


def rules(*pairs: tuple[str, str]) -> Meta:
    """CEL rules, given as pairs (rule, message)."""
    validations = [{"message": message, "rule": rule} for rule, message in pairs]
    return limit(**{"x-kubernetes-validations": validations})
