"""``-o jsonpath=...`` and ``-o custom-columns=...``, with kubectl's rules.

A template is text with parts in braces: a path, a string in double quotes, or ``{range PATH}`` with
its ``{end}``. A path that leads nowhere gives nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\{((?:[^{}\"']|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')*)\}|([^{}]+)|(.)", re.S
)
_DOTTED = re.compile(r"\.((?:[\w/-]|\\\.)*\\\.(?:[\w/-]|\\\.)*)")
"""A field whose name has dots, which are written as ``\\.``."""
_COMMA = re.compile(r",(?![^\[]*\])")


class BadExpression(Exception):
    """The expression cannot be used. The text is one line."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Path:
    text: str


@dataclass(frozen=True, slots=True)
class _Range:
    path: str
    parts: tuple[_Part, ...]


_Part = _Text | _Path | _Range


def check(form: str, expression: str) -> None:
    """Raise BadExpression if the expression of a format cannot be used."""
    if form == "jsonpath":
        _check(_template(expression))
        return
    for _, path in _columns(expression):
        find(path, None)


def evaluated(template: str, document: Mapping[str, Any]) -> str:
    """The text of a template for a document."""
    return "".join(_evaluated(_template(template), document, document))


def custom_columns(
    spec: str, document: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The titles of ``TITLE:PATH,...``, and a row for each item of a list, or for the document."""
    columns = _columns(spec)
    items = document.get("items")
    rows = tuple(
        tuple(_cell(find(path, item)) for _, path in columns)
        for item in (items if isinstance(items, list) else [document])
    )
    return tuple(title for title, _ in columns), rows


def _cell(values: Sequence[Any]) -> str:
    return ",".join(_shown(each) for each in values if each is not None)


def find(path: str, value: Any) -> list[Any]:
    """The values at a path; with or without braces, and with or without ``$`` or ``.``.

    Raises:
        BadExpression: the path is not understood.
    """
    import jsonpath

    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("@") or "."
    if not text.startswith("$"):
        text = f"${text}" if text.startswith((".", "[")) else f"$.{text}"
    text = _DOTTED.sub(lambda match: f"[{json.dumps(match[1].replace(chr(92), ''))}]", text)
    try:
        return list(jsonpath.findall("$" if text == "$." else text, value))
    except jsonpath.JSONPathError as error:
        reason = str(error).splitlines()[0]
        raise BadExpression(f"the path {path.strip()!r} is not understood: {reason}") from None


def _template(text: str) -> tuple[_Part, ...]:
    """The parts of a template. A path alone needs no braces."""
    if text.startswith((".", "$", "[")) and "{" not in text:
        return (_Path(text),)
    tokens = list(_TOKEN.finditer(text))
    parts, rest = _parts(tokens, inside=False)
    assert not rest
    return parts


def _parts(
    tokens: Sequence[re.Match[str]], *, inside: bool
) -> tuple[tuple[_Part, ...], Sequence[re.Match[str]]]:
    """The parts up to the ``{end}`` of the range that they are inside of, and what follows."""
    found: list[_Part] = []
    while tokens:
        token, tokens = tokens[0], tokens[1:]
        if token[3]:
            raise BadExpression(f"a brace is not closed or not opened: {token[3]!r}")
        if token[2]:
            found.append(_Text(token[2]))
            continue
        block = token[1].strip()
        if block == "end":
            if not inside:
                raise BadExpression("{end} without {range ...}")
            return tuple(found), tokens
        word, _, path = block.partition(" ")
        if word == "range":
            below, tokens = _parts(tokens, inside=True)
            found.append(_Range(path, below))
        else:
            found.append(_plain(block))
    if inside:
        raise BadExpression("{range ...} without {end}")
    return tuple(found), tokens


def _plain(block: str) -> _Part:
    if not block:
        raise BadExpression("empty braces")
    if block.startswith('"'):
        try:
            return _Text(json.loads(block))
        except ValueError:
            raise BadExpression(f"{block} is not a string in double quotes") from None
    return _Path(block)


def _check(parts: Sequence[_Part]) -> None:
    for part in parts:
        if isinstance(part, _Text):
            continue
        find(part.text if isinstance(part, _Path) else part.path, None)
        if isinstance(part, _Range):
            _check(part.parts)


def _evaluated(parts: Sequence[_Part], value: Any, root: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case _Text(text):
                yield text
            case _Path(path):
                yield " ".join(map(_shown, find(path, _start(path, value, root))))
            case _Range(path, below):
                for each in find(path, _start(path, value, root)):
                    yield from _evaluated(below, each, root)


def _start(path: str, value: Any, root: Any) -> Any:
    """Where a path begins: ``$`` is the whole document, also inside of a range."""
    return root if path.startswith("$") else value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _columns(spec: str) -> list[tuple[str, str]]:
    """Titles and paths of ``TITLE:PATH,...``."""
    found = []
    for column in _COMMA.split(spec):
        title, colon, path = column.partition(":")
        if not (colon and title and path):
            raise BadExpression(f"{column!r} is not a column: TITLE:PATH")
        found.append((title, path))
    return found
