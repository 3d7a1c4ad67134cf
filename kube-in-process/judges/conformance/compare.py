"""What differs between a recorded answer and the one that came, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judges.conformance.placeholders import Bindings, is_version
from judges.conformance.printed import without_printed_values
from judges.conformance.undeclared import without_chance


@dataclass(frozen=True, slots=True)
class Difference:
    """``field`` is a path below the answer: ``status``, ``headers.warning``, ``body.spec.x``."""

    field: str
    recorded: Any
    answered: Any

    def __str__(self) -> str:
        return f"{self.field}: recorded {_short(self.recorded)}, found {_short(self.answered)}"


MISSING = "(missing)"


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else f"{text[:400]}..."


def compare(path: str, recorded: Any, actual: Any, bindings: Bindings) -> list[Difference]:
    """Every leaf that differs; binds placeholders on the way."""
    if _is_store_version(path) and is_version(recorded):
        return _store_version(path, recorded, actual, bindings)
    if isinstance(recorded, dict) and isinstance(actual, dict):
        return _compare_maps(path, recorded, actual, bindings)
    if isinstance(recorded, list) and isinstance(actual, list):
        return _compare_lists(path, recorded, actual, bindings)
    if isinstance(recorded, str) and isinstance(actual, str):
        return _compare_texts(path, recorded, actual, bindings)
    if path.endswith(".rows") and not recorded and not actual:
        # null or no items, by whether the answer comes from the cache or from etcd
        return []
    same = recorded == actual and type(recorded) is type(actual)
    return [] if same else [_differs(path, recorded, actual)]


def _compare_texts(path: str, recorded: str, actual: str, bindings: Bindings) -> list[Difference]:
    if path.endswith("message"):
        recorded, actual = without_chance(recorded), without_chance(actual)
        short = (without_printed_values(recorded), without_printed_values(actual))
        if short != (recorded, actual) and bindings.match(*short):
            return []
    return [] if bindings.match(recorded, actual) else [_differs(path, recorded, actual)]


def _store_version(path: str, recorded: str, actual: Any, bindings: Bindings) -> list[Difference]:
    if not isinstance(actual, str) or not actual.isdigit():
        return [_differs(path, recorded, actual)]
    bindings.values.setdefault(recorded, actual)
    return []


def _differs(path: str, recorded: Any, actual: Any) -> Difference:
    return Difference(path, recorded, actual)


def _is_store_version(path: str) -> bool:
    """The version of a list or a bookmark is that of the whole store."""
    return path.endswith("(list).resourceVersion") or path.endswith("(bookmark).resourceVersion")


def _section(path: str, key: str, recorded: dict[str, Any]) -> str:
    if key == "metadata" and "items" in recorded:
        return f"{path}.metadata(list)"
    if key == "metadata" and "rows" in recorded:
        return f"{path}.metadata(list)"
    return f"{path}.{key}"


def _of_resources(body: dict[str, Any]) -> dict[str, Any]:
    """The resources of a group of custom kinds in the order of their names: a real server lists
    the definitions in the order of a Go map."""
    resources = body.get("resources")
    group = str(body.get("groupVersion", "")).partition("/")[0]
    if not isinstance(resources, list) or "." not in group or group.endswith(".k8s.io"):
        return body
    return {
        **body,
        "resources": sorted(resources, key=lambda resource: str(resource.get("name", ""))),
    }


_INVALID = " is invalid: "


def _of_causes(status: dict[str, Any]) -> dict[str, Any]:
    """A refusal whose causes stand in one order and each once: a real server looks at some parts of
    an object two and three times, and in which order differs between kinds and releases. The
    message of several causes is made of them, so what they say is compared there."""
    given = status.get("details")
    details: dict[str, Any] = given if isinstance(given, dict) else {}
    causes = details.get("causes")
    if status.get("code") == 409 and isinstance(causes, list):
        ordered = sorted(
            causes, key=lambda cause: (cause.get("message", ""), cause.get("field", ""))
        )
        return {**status, "details": {**details, "causes": ordered}}
    if status.get("code") != 422 or not isinstance(causes, list) or len(causes) < 2:
        return status
    unique = {(c.get("field", ""), _short_message(c), c.get("reason", "")): c for c in causes}
    compared = {**status, "details": {**details, "causes": [unique[key] for key in sorted(unique)]}}
    head, invalid, _ = status.get("message", "").partition(_INVALID)
    if invalid and len(unique) > 1:
        compared["message"] = head + invalid
    return compared


def _short_message(cause: dict[str, Any]) -> str:
    return without_printed_values(cause.get("message", ""))


def _compare_maps(
    path: str, recorded: dict[str, Any], actual: dict[str, Any], bindings: Bindings
) -> list[Difference]:
    if path == "body":
        recorded, actual = _of_causes(recorded), _of_causes(actual)
        recorded, actual = _of_resources(recorded), _of_resources(actual)
    differences: list[Difference] = []
    names = {key: bindings.fill(key) for key in recorded}
    order = sorted(recorded, key=lambda key: key in ("message", "causes", "details"))
    for key in order:
        below = _section(path, key, recorded)
        if names[key] in actual:
            differences += compare(below, recorded[key], actual[names[key]], bindings)
        else:
            differences.append(Difference(below, recorded[key], MISSING))
    extra = [key for key in actual if key not in names.values()]
    differences += [Difference(f"{path}.{key}", MISSING, actual[key]) for key in extra]
    return differences


def _compare_lists(
    path: str, recorded: list[Any], actual: list[Any], bindings: Bindings
) -> list[Difference]:
    if len(recorded) != len(actual):
        return [Difference(f"{path}.length", len(recorded), len(actual))]
    if any("<gen:" in _name(resource) for resource in recorded):
        # Lists are in the order of names, also of those that the server made.
        recorded = sorted(recorded, key=lambda item: bindings.fill(_name(item)))
        actual = sorted(actual, key=_name)
    if path.endswith(".managedFields"):
        # They are in the order of the seconds in which they were written.
        recorded, actual = sorted(recorded, key=_manager), sorted(actual, key=_manager)
    differences: list[Difference] = []
    for index, (old, other) in enumerate(zip(recorded, actual, strict=True)):
        differences += compare(f"{path}[{index}]", old, other, bindings)
    return differences


def _manager(entry: dict[str, Any]) -> tuple[Any, ...]:
    names = ("operation", "manager", "apiVersion", "subresource")
    return (*(entry.get(name, "") for name in names), "time" in entry)


def _name(item: Any) -> str:
    """The name of an object in a list, or in a row of a table."""
    if not isinstance(item, dict):
        return ""
    obj = item.get("object") or item
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(name, str):
        return name
    cells = item.get("cells")
    return str(cells[0]) if isinstance(cells, list) and cells else ""


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
