"""JSON that nobody would write: odd values, and valid documents with odd places."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

Json = Any

_TEXTS = (
    "",
    "a",
    "A b",
    "-",
    "kubernetes",
    "x" * 70,
    "x" * 300,
    "a/b/c",
    "../..",
    "*",
    "null",
    "1",
    "-1",
    "100m",
    "1Gi",
    "1e400",
    "50%",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000Z",
    "9999-99-99T99:99:99Z",
    "v1",
    "apps/v1",
    "ß",
    "\x00",
    "\U0001f600",
    "self.x == 1",
    "((((",
    "[a-z",
    ".spec.x[0]",
)
_KEYS = (
    "metadata",
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "deletionTimestamp",
    "generation",
    "creationTimestamp",
    "spec",
    "status",
    "kind",
    "apiVersion",
    "replicas",
    "selector",
    "template",
    "conditions",
    "reservedFor",
    "allocation",
    "devices",
    "containers",
    "$patch",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$retainKeys",
    "op",
    "path",
    "value",
    "from",
    "",
    "a.b/c",
)
texts = st.one_of(st.sampled_from(_TEXTS), st.text(max_size=8))
keys = st.one_of(st.sampled_from(_KEYS), st.text(max_size=4))
numbers = st.one_of(
    st.sampled_from((0, 1, -1, 2, 256, 257, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e300)),
    st.integers(-5, 5),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
anything = st.recursive(
    scalars,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(keys, below, max_size=3)),
    max_leaves=6,
)


@st.composite
def bent(draw: st.DrawFn, document: Json, *, most: int = 3) -> Json:
    """``document`` with up to ``most`` places replaced, removed, doubled or added."""
    bent_document = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, most))):
        bent_document = _bend(draw, bent_document)
    return bent_document


def _bend(draw: st.DrawFn, document: Json) -> Json:
    places = list(_places(document))
    if not places:
        return draw(anything)
    holder, key = draw(st.sampled_from(places))
    how = draw(st.integers(0, 5))
    if how <= 1:
        holder[key] = draw(anything)
    elif how == 2:
        holder[key] = draw(scalars)
    elif how == 3:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[draw(keys)] = draw(anything)
    return document


def _places(document: Json) -> list[tuple[Any, Any]]:
    """Everything in a document that can be put in another's place: (holder, key)."""
    places: list[tuple[Any, Any]] = []
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
