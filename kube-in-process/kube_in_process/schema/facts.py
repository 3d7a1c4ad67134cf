"""Facts about fields that the models of the official client lack: ``facts.json``.

These are facts of the Kubernetes API: the list types and patch strategies of its Go types, and
which empty values Go writes. Fields are named ``Model.jsonField``, with the model's name in the
``kubernetes`` package.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.text.data import table


@dataclass(frozen=True, slots=True)
class ListRule:
    list_type: str
    keys: tuple[str, ...] = ()
    strategy: str = ""
    merge_key: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """``conditions`` is the rule for a field of that name whose items are a model with a ``type``.

    In a strategic merge patch, ``keep_keys_fields`` may name the keys to keep (patchStrategy
    retainKeys). ``atomic_objects`` (models) and ``atomic_maps`` are owned as a whole (mapType
    atomic). ``quantity_maps`` are names of maps to quantities, ``quantities`` are single
    quantities. ``int64`` are fields of 64 bits, by their name if that holds for all models.
    ``meta_models`` are models of apimachinery. Every other model belongs to the group in which it
    is first met.

    Go always writes a value without ``omitempty``, leaves out an empty value with it, and writes a
    pointer whenever it is set. The defaults in the served OpenAPI documents show the first kind.
    The rest are facts of the Go types. ``structs`` are structs by value: an empty one is an empty
    object, never absent. ``zeroes`` are scalars that are written when they are zero, in addition to
    the required ones. ``nulls`` are lists, maps and times that are null when they are empty; all
    others are left out then. ``nulls_before_1_36`` are null in older versions only.
    ``required`` are required fields that the models of the client take for optional. ``pointers``
    are optional strings that are pointers: an empty one is kept. ``plain`` are optional numbers and
    booleans that are values: zero and false are left out. ``go_types`` has the Go types of fields
    that are plain strings in JSON.
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
    nulls_before_1_36: frozenset[str]
    required: frozenset[str]
    pointers: frozenset[str]
    plain: frozenset[str]
    go_types: dict[str, str]


FACTS = table(__package__, "facts.json", Facts)
