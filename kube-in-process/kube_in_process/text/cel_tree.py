"""The tree of a CEL expression, for checks of its types and of its cost."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<space>\s+|//[^\n]*)
    |(?P<mark>&&|\|\||[<>=!]=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_LEVELS = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
"""The operators, those that bind least first."""
_WORDS = {"true": "bool", "false": "bool", "null": "null"}


class NotUnderstood(ValueError):
    """The expression has something that this parser does not know."""


@dataclass(frozen=True, slots=True)
class CelNode:
    """``kind`` is literal, name, select, optional (a field that may be missing), has, call, method,
    list, map, object (of a type that ``name`` names) or field (of such an object). ``at`` is where
    the server says that an error is. ``name`` is the name, the operator or the type of a literal.
    ``parts`` are the parts: the target of a selection or a method is the first."""

    kind: str
    at: int
    name: str = ""
    parts: tuple[CelNode, ...] = ()
    length: int = 1
    """Of a literal text."""
    text: str = ""
    """Of a literal, as in the source and without quotes."""


def tree_of(source: str) -> CelNode:
    """The tree of an expression.

    Raises:
        NotUnderstood
    """
    parser = _Parser(source)
    tree = parser.expression()
    if parser.kind:
        raise NotUnderstood(source)
    return tree


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(source):
            match = _TOKENS.match(source, at)
            if match is None:
                raise NotUnderstood(source)
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup or "", match[0], at))
            at = match.end()
        self._next = 0

    def _peek(self) -> tuple[str, str, int]:
        more = self._next < len(self._tokens)
        return self._tokens[self._next] if more else ("", "", -1)

    @property
    def kind(self) -> str:
        return self._peek()[0]

    @property
    def text(self) -> str:
        """The next token, if it is a mark or a name."""
        kind, text, _ = self._peek()
        return text if kind in ("mark", "name") else ""

    def _take(self, wanted: str = "") -> tuple[str, int]:
        kind, text, at = self._peek()
        if not kind or (wanted and text != wanted):
            raise NotUnderstood(text)
        self._next += 1
        return text, at

    def expression(self) -> CelNode:
        node = self._binary(0)
        if self.text != "?":
            return node
        _, at = self._take()
        yes = self._binary(0)
        self._take(":")
        return CelNode("call", at, "_?_:_", (node, yes, self.expression()))

    def _binary(self, level: int) -> CelNode:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self.text in _LEVELS[level]:
            text, at = self._take()
            name = "@in" if text == "in" else f"_{text}_"
            node = CelNode("call", at, name, (node, self._binary(level + 1)))
        return node

    def _unary(self) -> CelNode:
        if self.text not in ("!", "-"):
            return self._member()
        text, at = self._take()
        inner = self._unary()
        if text == "-" and inner.kind == "literal" and inner.name in ("int", "double"):
            return inner
        return CelNode("call", at, f"{text}_", (inner,))

    def _member(self) -> CelNode:
        member = self._primary()
        while self.text in (".", ".?", "[", "[?"):
            mark, at = self._take()
            if mark in ("[", "[?"):
                name = "_[?_]" if mark == "[?" else "_[_]"
                member = CelNode("call", at, name, (member, self.expression()))
                self._take("]")
                continue
            if self.kind != "name":
                raise NotUnderstood(self.text)
            name, _ = self._take()
            if self.text == "(" and mark == ".":
                _, at = self._take()
                member = CelNode("method", at, name, (member, *self._list(")", self.expression)))
            else:
                member = CelNode("select" if mark == "." else "optional", at, name, (member,))
        return self._object(member) if self.text == "{" else member

    def _object(self, named: CelNode) -> CelNode:
        """An object of a type, whose name is read already."""
        names = [named.name]
        while named.kind == "select":
            named = named.parts[0]
            names.append(named.name)
        if named.kind != "name":
            raise NotUnderstood("an object without a type")
        _, at = self._take()
        return CelNode("object", at, ".".join(reversed(names)), self._list("}", self._field))

    def _field(self) -> CelNode:
        if self.kind != "name":
            raise NotUnderstood(self.text)
        name, _ = self._take()
        _, at = self._take(":")
        return CelNode("field", at, name, (self.expression(),))

    def _primary(self) -> CelNode:
        kind, text, at = self._peek()
        if kind == "name":
            return self._named()
        self._take()
        if kind == "text":
            marks = text[: re.search("['\"]", text).start()]  # type: ignore[union-attr]
            plain = text.lstrip("rRbB").strip("'\"")
            name = "bytes" if "b" in marks.lower() else "string"
            return CelNode("literal", at, name, length=len(plain), text=plain)
        if kind == "number":
            return CelNode("literal", at, _number(text), text=text)
        if text == "(":
            node = self.expression()
            self._take(")")
            return node
        if text == "[":
            return CelNode("list", at, parts=self._list("]", self.expression))
        if text == "{":
            pairs = self._list("}", self._pair)
            return CelNode("map", at, parts=tuple(part for pair in pairs for part in pair.parts))
        raise NotUnderstood(text)

    def _named(self) -> CelNode:
        text, at = self._take()
        if text in _WORDS:
            return CelNode("literal", at, _WORDS[text])
        if self.text != "(":
            return CelNode("name", at, text)
        _, at = self._take()
        parts = self._list(")", self.expression)
        if text != "has":
            return CelNode("call", at, text, parts)
        if len(parts) != 1 or parts[0].kind != "select":
            raise NotUnderstood("has")
        return CelNode("has", at, parts[0].name, parts[0].parts)

    def _pair(self) -> CelNode:
        key = self.expression()
        self._take(":")
        return CelNode("pair", key.at, parts=(key, self.expression()))

    def _list(self, end: str, read: Callable[[], CelNode]) -> tuple[CelNode, ...]:
        """The items up to ``end``; a comma may follow the last."""
        nodes: list[CelNode] = []
        while self.text != end:
            nodes.append(read())
            if self.text != ",":
                break
            self._take()
        self._take(end)
        return tuple(nodes)


def _number(text: str) -> str:
    if text[-1] in "uU":
        return "uint"
    return "int" if text.isdigit() or text[:2] in ("0x", "0X") else "double"
