"""The types of CEL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class CelType:
    """``items`` are the types of the elements of a list, or of the keys and values of a map.
    ``most`` is how long a text is at most, or how many elements there are."""

    name: str
    items: tuple[CelType, ...] = ()
    fields: Mapping[str, CelType] | None = field(default=None, compare=False)
    most: int = field(default=UNBOUNDED, compare=False)

    def __str__(self) -> str:
        inner = ", ".join(str(item) for item in self.items)
        return f"{self.name}({inner})" if inner else self.name


DYN, BOOL, INT, DOUBLE = CelType("dyn"), CelType("bool"), CelType("int"), CelType("double")
ANY = CelType("any")
"""What may be of several types, like ``dyn``."""
WILD = ("any", "dyn")
STRING, NULL, TYPE = CelType("string"), CelType("null"), CelType("type")
UNKNOWN = CelType("dyn", fields=None, most=UNBOUNDED - 1)
"""What this checker does not know: any use of it passes."""
FREE = CelType("dyn", fields=None, most=UNBOUNDED - 2)
"""The type of the elements of an empty list: any that is wanted."""


def holds(kind: CelType, part: CelType) -> bool:
    """Whether a type is ``part``, or has it inside."""
    return kind is part or any(holds(item, part) for item in kind.items)


def fits(one: CelType, other: CelType) -> bool:
    """Whether a value of the one type can be used as the other, or may turn out to be one."""
    if one.name in WILD or other.name in WILD:
        return True
    if "null" in (one.name, other.name):
        rest = other if one.name == "null" else one
        return rest.fields is not None or rest.name in _NULLABLE
    same = one.name == other.name and len(one.items) == len(other.items)
    return same and all(map(fits, one.items, other.items))


_NULLABLE = ("null", "timestamp", "duration")


_RUNTIME_NAMES = {"null": "null_type", "any": "google.protobuf.Any"}


def runtime_name(kind: CelType) -> str:
    """The name of a type where an error is about the value of a whole expression."""
    inner = ", ".join(map(runtime_name, kind.items))
    name = _RUNTIME_NAMES.get(kind.name, kind.name)
    return f"{name}({inner})" if inner else name
