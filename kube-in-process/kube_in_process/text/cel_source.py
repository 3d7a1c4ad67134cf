"""CEL sources that the library cannot read: typed objects and optional fields.

``Object{spec: Object.spec{replicas: 1}}`` becomes a map, as the types of these objects are those of
the patched kind. ``object.?spec.?replicas.orValue(1)`` becomes calls of ``select``, also where it
goes on with a plain dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_TOKENS = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<space>\s+|//[^\n]*)
    |(?P<mark>\.\?|\[\?|[\s\S])""",
    re.VERBOSE,
)
_TYPED = ("Object", "JSONPatch")
_OPENS, _CLOSES = ("(", "[", "{", "[?"), (")", "]", "}")


@lru_cache(maxsize=1024)
def readable(source: str) -> str:
    """The source with maps for typed objects, and calls for optional fields."""
    if ".?" not in source and "[?" not in source and not any(name in source for name in _TYPED):
        return source
    return "".join(_Writer(list(_tokens(source))).written())


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    for match in _TOKENS.finditer(source):
        yield match.lastgroup or "", match[0]


class _Writer:
    """Writes the tokens of the new source. ``opened`` has an entry for each open bracket: how it
    ends, and whether it holds the fields of a typed object. ``optional`` has the depths at which
    the value before the next dot is optional."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._opened: list[tuple[str, bool]] = []
        self._optional: set[int] = set()

    def written(self) -> Iterator[str]:
        for index, (kind, text) in enumerate(self._tokens):
            if kind == "name":
                yield self._name(index, text)
            elif text in (".", ".?"):
                dropped = text == ".?" or self._is_optional or _is_type(self._tokens, index + 1)
                yield "" if dropped else text
            elif text in _OPENS:
                yield self._open(index, text)
            elif text in _CLOSES and self._opened:
                self._optional.discard(len(self._opened))
                end, _ = self._opened.pop()
                yield end or text
            else:
                if kind == "mark":
                    self._optional.discard(len(self._opened))
                yield text

    @property
    def _is_optional(self) -> bool:
        return len(self._opened) in self._optional

    def _name(self, index: int, text: str) -> str:
        if _is_type(self._tokens, index):
            return ""
        before = _neighbour(self._tokens, index, -1)
        if before in ("{", ",") and self._opened and self._opened[-1][1]:
            return f'"{text}"'
        if before == ".?":
            self._optional.add(len(self._opened))
            return f'.select("{text}")'
        if before != "." or not self._is_optional:
            return text
        if _neighbour(self._tokens, index, 1) != "(":
            return f'.select("{text}")'
        if text in _ENDS:
            self._optional.discard(len(self._opened))
        return f".{_ENDS.get(text, text)}"

    def _open(self, index: int, text: str) -> str:
        begins = text == "[?"
        goes_on = text == "[" and self._is_optional
        if begins:
            self._optional.add(len(self._opened))
        typed = text == "{" and _follows_type(self._tokens, index)
        self._opened.append((")" if begins or goes_on else "", typed))
        return ".select(" if begins or goes_on else text


_ENDS = {"orValue": "valueOr", "hasValue": "isThere", "value": "valueOf"}
"""The functions whose results are no optional values; the library has its own of these names."""


def _neighbour(tokens: list[tuple[str, str]], index: int, step: int) -> str:
    """The nearest token beside one that is no space; '' if there is none."""
    index += step
    while 0 <= index < len(tokens):
        if tokens[index][0] != "space":
            return tokens[index][1]
        index += step
    return ""


def _is_type(tokens: list[tuple[str, str]], index: int) -> bool:
    """Whether a name is a part of a type, such as ``Object.spec`` before a ``{``."""
    first = index
    while first >= 2 and tokens[first - 1][1] == "." and tokens[first - 2][0] == "name":
        first -= 2
    if index >= len(tokens) or tokens[first][1] not in _TYPED:
        return False
    last = index
    while last + 2 < len(tokens) and tokens[last + 1][1] == "." and tokens[last + 2][0] == "name":
        last += 2
    return _neighbour(tokens, last, 1) == "{"


def _follows_type(tokens: list[tuple[str, str]], index: int) -> bool:
    index -= 1
    while index >= 0 and tokens[index][0] == "space":
        index -= 1
    return index >= 0 and tokens[index][0] == "name" and _is_type(tokens, index)


_OWN = re.compile(r"\b(?:bool|size|string)\s*\(")
_OWN_NAMES = ("bool", "size", "string")


@lru_cache(maxsize=1024)
def with_own_functions(source: str) -> str:
    """The source with ``size_`` for ``size`` and the like: the library's count bytes, and write
    other texts."""
    if not _OWN.search(source):
        return source
    tokens = list(_tokens(source))
    return "".join(
        f"{text}_"
        if kind == "name" and text in _OWN_NAMES and _neighbour(tokens, index, 1) == "("
        else text
        for index, (kind, text) in enumerate(tokens)
    )


_NAMESPACES = ("base64", "cel", "format", "jsonpatch", "lists", "math", "optional", "regex", "sets")
_MACROS = {"all": 2, "exists": 2, "exists_one": 2, "filter": 2, "map": 3}
"""The most arguments of each macro: those with two variables are not served."""


def unserved(source: str, functions: frozenset[str]) -> str:
    """The first function that an expression calls and that is not in ``functions``; '' if all
    are."""
    tokens = [token for token in _tokens(source) if token[0] != "space"]
    for index, (kind, text) in enumerate(tokens[:-1]):
        if kind != "name" or tokens[index + 1][1] != "(":
            continue
        before = [word for _, word in tokens[max(index - 2, 0) : index]]
        spaced = len(before) == 2 and before[1] == "." and before[0] in _NAMESPACES
        name = f"{before[0]}.{text}" if spaced else text
        if name not in functions or _arguments(tokens, index + 1) > _MACROS.get(name, 9):
            return name
    return ""


def _arguments(tokens: list[tuple[str, str]], start: int) -> int:
    """How many arguments there are between the bracket at ``start`` and its end."""
    depth, count = 0, 1
    for _, text in tokens[start:]:
        depth += (text in _OPENS) - (text in _CLOSES)
        if depth == 0:
            break
        count += text == "," and depth == 1
    return count
