"""What differs between a recorded answer and the one that came, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.conformance.placeholders import Bindings, is_version


@dataclass(frozen=True, slots=True)
class Difference:
    """``field`` is a path below the answer: ``status``, ``headers.warning``, ``body.spec.x``."""

    field: str
    recorded: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.field}: recorded {_short(self.recorded)}, found {_short(self.found)}"


MISSING = "(missing)"


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else f"{text[:400]}..."


def compare(path: str, recorded: Any, found: Any, bindings: Bindings) -> list[Difference]:
    """Every leaf that differs; binds placeholders on the way."""
    if _is_store_version(path) and is_version(recorded):
        return _store_version(path, recorded, found, bindings)
    if isinstance(recorded, dict) and isinstance(found, dict):
        return _compare_maps(path, recorded, found, bindings)
    if isinstance(recorded, list) and isinstance(found, list):
        return _compare_lists(path, recorded, found, bindings)
    if isinstance(recorded, str) and isinstance(found, str):
        return [] if bindings.match(recorded, found) else [_differs(path, recorded, found)]
    same = recorded == found and type(recorded) is type(found)
    return [] if same else [_differs(path, recorded, found)]


def _store_version(path: str, recorded: str, found: Any, bindings: Bindings) -> list[Difference]:
    if not isinstance(found, str) or not found.isdigit():
        return [_differs(path, recorded, found)]
    bindings.values.setdefault(recorded, found)
    return []


def _differs(path: str, recorded: Any, found: Any) -> Difference:
    return Difference(path, recorded, found)


def _is_store_version(path: str) -> bool:
    """The version of a list or a bookmark is that of the whole store."""
    return path.endswith("(list).resourceVersion") or path.endswith("(bookmark).resourceVersion")


def _section(path: str, key: str, recorded: dict[str, Any]) -> str:
    if key == "metadata" and "items" in recorded:
        return f"{path}.metadata(list)"
    if key == "metadata" and "rows" in recorded:
        return f"{path}.metadata(list)"
    return f"{path}.{key}"


def _compare_maps(
    path: str, recorded: dict[str, Any], found: dict[str, Any], bindings: Bindings
) -> list[Difference]:
    differences: list[Difference] = []
    names = {key: bindings.fill(key) for key in recorded}
    order = sorted(recorded, key=lambda key: key in ("message", "causes", "details"))
    for key in order:
        below = _section(path, key, recorded)
        if names[key] in found:
            differences += compare(below, recorded[key], found[names[key]], bindings)
        else:
            differences.append(Difference(below, recorded[key], MISSING))
    extra = [key for key in found if key not in names.values()]
    differences += [Difference(f"{path}.{key}", MISSING, found[key]) for key in extra]
    return differences


def _compare_lists(
    path: str, recorded: list[Any], found: list[Any], bindings: Bindings
) -> list[Difference]:
    if len(recorded) != len(found):
        return [Difference(f"{path}.length", len(recorded), len(found))]
    differences: list[Difference] = []
    for index, (one, other) in enumerate(zip(recorded, found, strict=True)):
        differences += compare(f"{path}[{index}]", one, other, bindings)
    return differences


def without_managed_fields(value: Any) -> Any:
    """Recordings have none, except where they are about them."""
    if isinstance(value, dict):
        return {
            key: without_managed_fields(inner)
            for key, inner in value.items()
            if key != "managedFields"
        }
    if isinstance(value, list):
        return [without_managed_fields(inner) for inner in value]
    return value
