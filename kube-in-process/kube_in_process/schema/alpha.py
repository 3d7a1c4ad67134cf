"""Fields and kinds that the official client lacks: ``alpha.json``.

These are the fields of KEP-5194 (in no released server), and scheduling.k8s.io/v1alpha2. 1.36
serves that version; 1.37, which the client is for, has dropped it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_in_process.schema.models import Fields
from kube_in_process.text.data import table


@dataclass(frozen=True, slots=True)
class AddedModel:
    """A model that is not in the client."""

    name: str
    description: str
    fields: Fields = field(default_factory=dict)
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Alpha:
    reserved_for_fields: dict[str, Fields]
    kinds: dict[str, AddedModel]
    definitions: dict[str, AddedModel]


_ALPHA = table(__package__, "alpha.json", _Alpha)
RESERVED_FOR_FIELDS = _ALPHA.reserved_for_fields
DEFINITIONS = _ALPHA.definitions
ADDED = {("scheduling.k8s.io", "v1alpha2", kind): one for kind, one in _ALPHA.kinds.items()}
