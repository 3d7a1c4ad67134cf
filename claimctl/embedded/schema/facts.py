"""Facts about fields that the models of the official client lack: ``facts.json``.

These are facts of the Kubernetes API: the list types and patch strategies of its Go types, and
which empty values Go writes. Fields are named ``Model.jsonField``, with the model's name in the
``kubernetes`` package.
"""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.embedded.text.data import table


@dataclass(frozen=True, slots=True)
class ListRule:
    list_type: str
    keys: tuple[str, ...] = ()
    strategy: str = ""
    merge_key: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """``conditions`` is the rule for a field of that name whose items are a model with a ``type``.

    A strategic merge patch may say which keys stay of ``keep_keys_fields`` (patchStrategy
    retainKeys). ``atomic_objects`` (models) and ``atomic_maps`` are owned as a whole (mapType
    atomic). ``quantity_maps`` are names of maps to quantities, ``quantities`` quantities on their
    own. ``int64`` are fields of 64 bits, by their name where that is so in every model that has
    it. ``meta_models`` are models of apimachinery; every other model belongs to the group in which
    it is first met.

    Go writes a field of a struct always if it is a value without ``omitempty``, leaves it out when
    it is empty if it is one with it, and writes a pointer whenever it is set. The served OpenAPI
    documents tell the first kind by their defaults; which of the others are pointers is a fact of
    the Go types. ``structs`` are structs by value: an empty one is an empty object, never absent.
    ``zeroes`` are scalars that are written when they are zero, beside the required ones. ``nulls``
    are lists and maps that are null when they are empty; all others are left out then.
    ``pointers`` are optional strings that are pointers: an empty one is kept. ``plain`` are
    optional numbers and booleans that are values: zero and false are left out. ``go_types`` names
    the Go types of fields that are plain strings in JSON, as the decoder names them.
    """

    lists: dict[str, ListRule]
    conditions: ListRule
    keep_keys_fields: frozenset[str]
    atomic_objects: frozenset[str]
    atomic_maps: frozenset[str]
    quantity_maps: frozenset[str]
    quantities: frozenset[str]
    micro_times: frozenset[str]
    int_or_string: frozenset[str]
    int64: frozenset[str]
    meta_models: frozenset[str]
    structs: frozenset[str]
    zeroes: frozenset[str]
    nulls: frozenset[str]
    pointers: frozenset[str]
    plain: frozenset[str]
    go_types: dict[str, str]


FACTS = table(__package__, "facts.json", Facts)
