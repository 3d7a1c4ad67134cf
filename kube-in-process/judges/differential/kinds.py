"""Names the kind of a difference. The same difference has the same name in every run."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

from judges.conformance.compare import MISSING, Difference
from judges.differential.templates import Step, plural_of

_PATHS = re.compile(r"\[\d+\]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\'[^\']*\'')
_NUMBER = re.compile(r"\d+")
_PLACEHOLDER = re.compile(r"<[a-z]+(?::\d+)?>")
_LONGEST = 150
_OPEN_MAPS = ("labels", "annotations", "matchLabels", "data", "nodeSelector")
_PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


_SAME = "message quotes another value: "
_FAMILIES = (
    ("a message quotes the whole patched object", re.compile(f"{_SAME}patch: ")),
    (
        "a message quotes a diff of pod specs",
        re.compile(f"{_SAME}.*Forbidden: pod updates may not change fields"),
    ),
    (
        "a message quotes a pod template",
        re.compile(rf"{_SAME}\[?(.*spec\.template: |spec\.(selector|completions|template\.))"),
    ),
    (
        "a message has the words of the CEL parser",
        re.compile(
            r"message(:| quotes another value:) .*compilation failed: ERROR: .*Syntax error"
        ),
    ),
)
"""Kinds that count as one for all resources."""


def kind_of(step: Step, differences: tuple[Difference, ...]) -> str:
    """The kind of a step, from its most telling difference."""
    chosen = _chosen(differences)
    if chosen.field.endswith("].description"):
        return "the description of a column"
    texts = _told(chosen, differences)
    for family, pattern in _FAMILIES:
        if pattern.match(texts):
            return family
    return f"{_what(step)}: {texts}"


def _chosen(differences: tuple[Difference, ...]) -> Difference:
    for field in ("status", "body.message"):
        for difference in differences:
            if difference.field == field:
                return difference
    return differences[0]


def _what(step: Step) -> str:
    request = step["request"]
    method, path = request["method"], request["path"]
    parts = path.partition("?")[0].split("/")
    plural = plural_of(path) or path.partition("?")[0]
    sub = _subresource(parts, plural)
    how = _PATCHES.get(request.get("headers", {}).get("content-type", ""), "")
    asked = dict(parse_qsl(path.partition("?")[2]))
    if asked.get("watch") == "true":
        method = "WATCH"
    table = " as table" if "as=Table" in request.get("headers", {}).get("accept", "") else ""
    group = parts[2] if parts[1] == "apis" and plural == "events" else ""
    return " ".join(part for part in (method, how, group, plural + sub) if part) + table


def _subresource(parts: list[str], plural: str) -> str:
    after = parts[parts.index(plural) + 1 :] if plural in parts else []
    return f"/{after[1]}" if len(after) > 1 and after[1] else ""


def _told(chosen: Difference, differences: tuple[Difference, ...]) -> str:
    if chosen.field == "status":
        message = next((d for d in differences if d.field == "body.message"), None)
        refused = chosen.recorded if chosen.recorded >= 400 else chosen.answered
        texts: tuple[Any, Any] = ("", "")
        if message is not None:
            texts = (message.recorded, message.answered)
        said = texts[0] if refused == chosen.recorded else texts[1]
        return f"status {chosen.recorded}, here {chosen.answered}: {plain(said)}"
    if chosen.field.endswith("message"):
        pair = (plain(chosen.recorded), plain(chosen.answered))
        if pair[0] == pair[1]:
            return f"message quotes another value: {pair[0]}"
        return f"message: {pair[0]} | {pair[1]}"
    return f"{field_of(chosen.field)} {_values(chosen)}"


def _values(difference: Difference) -> str:
    if difference.answered == MISSING:
        return "missing"
    if difference.recorded == MISSING:
        return "extra"
    return "different"


def field_of(path: str) -> str:
    """A path without indexes and without the keys of open maps."""
    parts = _PATHS.sub("[]", path).split(".")
    for index, part in enumerate(parts):
        if part in _OPEN_MAPS:
            return ".".join([*parts[: index + 1], "*"][: len(parts)])
    return ".".join(parts)


def plain(text: Any) -> str:
    """A message without quoted values, numbers and placeholders."""
    if not isinstance(text, str) or text == MISSING:
        return "-"
    text = text.partition(" is invalid: ")[2] or text
    text = _QUOTED.sub("Q", " ".join(text.split()))
    text = _PLACEHOLDER.sub("P", text)
    text = re.sub(r"map\[.*?\]|\[\]interface {}{.*?}|{.*}", "V", text)
    return _NUMBER.sub("N", text)[:_LONGEST]
