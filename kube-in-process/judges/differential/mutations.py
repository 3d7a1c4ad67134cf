"""Changes one field of a valid object, to a wrong or another valid value."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

Json = Any
Place = tuple[Any, Any]

_TEXTS = (
    "",
    "a",
    "b",
    "Upper",
    "with space",
    "-dash",
    "a.b",
    "a/b",
    "example.com/x",
    "x" * 64,
    "x" * 254,
    "1",
    "100m",
    "1Gi",
    "50%",
    "Always",
    "Never",
    "All",
    "None",
    "True",
    "2025-01-01T00:00:00Z",
    "v1",
)
_NUMBERS = (0, 1, -1, 2, 33, 257, 100000, 2**31, 2**40, 1.5)
_LABELS = ({"a": "b"}, {"A/B": "c"}, {"a": "-"}, {"a b": "c"}, {"k": 1}, {"x/y/z": "w"})
_METADATA: tuple[tuple[str, Json], ...] = (
    *(("labels", label) for label in _LABELS),
    *(("annotations", label) for label in _LABELS),
    ("finalizers", ["example.com/hold"]),
    ("finalizers", ["hold"]),
    ("finalizers", ["example.com/hold", "example.com/hold"]),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u-1"}]),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "o"}]),
    ("ownerReferences", [{"apiVersion": "a/b/c", "kind": "", "name": "o", "uid": "u"}]),
    ("uid", "chosen-uid"),
    ("generation", 7),
    ("creationTimestamp", None),
    ("deletionTimestamp", "2025-01-01T00:00:00Z"),
    ("deletionGracePeriodSeconds", 3),
    ("resourceVersion", "1"),
    ("generateName", "made-"),
    ("namespace", "elsewhere"),
    ("name", "Bad_Name"),
    ("name", ""),
    ("name", "x" * 260),
    ("name", "a.b"),
    ("selfLink", "/x"),
    ("nosuch", "x"),
    ("labels", "x"),
    ("annotations", []),
)
_ADDED = ("nosuch", "status", "replicas", "name", "x-y")


def bent(rng: Random, body: Json) -> Json:
    """A copy with one field changed: dropped, null, of another type, odd, doubled or added."""
    bent_body = copy.deepcopy(body)
    if rng.random() < 0.25:
        _bend_metadata(rng, bent_body)
        return bent_body
    places = [place for place in _places(bent_body) if not _type_meta(place, bent_body)]
    if not places:
        return bent_body
    _bend(rng, *rng.choice(places))
    return bent_body


def _bend_metadata(rng: Random, bent_body: Json) -> None:
    key, value = rng.choice(_METADATA)
    if isinstance(bent_body.get("metadata"), dict):
        bent_body["metadata"][key] = copy.deepcopy(value)


def _type_meta(place: Place, bent_body: Json) -> bool:
    holder, key = place
    return holder is bent_body and key in ("metadata", "kind", "apiVersion")


def _bend(rng: Random, holder: Json, key: Json) -> None:
    value = holder[key]
    how = rng.randrange(12)
    if how <= 2:
        del holder[key]
    elif how == 3:
        holder[key] = None
    elif how == 4:
        holder[key] = _other_type(rng, value)
    elif how == 5 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif how == 5 and isinstance(holder, dict):
        holder[rng.choice(_ADDED)] = rng.choice(_TEXTS)
    else:
        holder[key] = _alike(rng, value)


def _other_type(rng: Random, value: Json) -> Json:
    others: list[Json] = [{}, [], "x", 3, True, {"x": "y"}, ["x"], 1.5]
    return rng.choice([other for other in others if type(other) is not type(value)])


def _alike(rng: Random, value: Json) -> Json:
    """Another value of the same JSON type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return rng.choice(_NUMBERS)
    if isinstance(value, str):
        return rng.choice(_TEXTS)
    if isinstance(value, list):
        return [*value, *copy.deepcopy(value)] if rng.random() < 0.6 else []
    if value is None:
        return rng.choice(_TEXTS)
    return {} if rng.random() < 0.4 else {**value, rng.choice(_ADDED): rng.choice(_TEXTS)}


def _places(document: Json) -> list[Place]:
    """Every place in a document whose value can be changed, as (container, key)."""
    places: list[Place] = []
    below = [document]
    for value in below:
        entries: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            entries = list(value.items())
        elif isinstance(value, list):
            entries = list(enumerate(value))
        places += [(value, key) for key, _ in entries]
        below += [item for _, item in entries]
    return places


def fragment(rng: Random, body: Json) -> Json:
    """A merge patch with one path of an object, down to some value."""
    if not isinstance(body, dict) or not body:
        return copy.deepcopy(body)
    key = rng.choice(list(body))
    if rng.random() < 0.2:
        return {key: copy.deepcopy(body[key])}
    return {key: fragment(rng, body[key])}


def pointer(rng: Random, body: Json) -> str:
    """A JSON pointer to some value of an object, or to none."""
    path = ""
    value = body
    while isinstance(value, (dict, list)) and value and (not path or rng.random() < 0.7):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        path += "/" + str(key).replace("~", "~0").replace("/", "~1")
        value = value[key]
    return path + "/nosuch" if rng.random() < 0.1 else path
