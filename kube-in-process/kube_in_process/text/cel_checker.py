"""Check the types of CEL expressions. What is not known passes: its type is ``dyn``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube_in_process.text.cel import EvaluationError, compiled
from kube_in_process.text.cel_format import format_problem
from kube_in_process.text.cel_signatures import PATCHES, is_function, result
from kube_in_process.text.cel_tree import CelNode, NotUnderstood, tree_of
from kube_in_process.text.cel_type import (
    BOOL,
    DYN,
    FREE,
    INT,
    TYPE,
    UNBOUNDED,
    UNKNOWN,
    WILD,
    CelType,
    fits,
)

_UNCHECKED = frozenset(("authorizer", "validate", "sortBy", "ip"))
"""Functions whose types are not known here."""
_READ = {
    "timestamp": "timestamp(text)",
    "duration": "duration(text)",
    "matches": "''.matches(text)",
}
"""Functions that read a text, and how to try whether they can."""
_TESTS = ("all", "exists", "exists_one", "existsOne")
_MACROS = (*_TESTS, "map", "filter", "transformList", "transformMap")
_TYPE_NAMES = (
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
)


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known of an expression before it is used. ``problem`` is the server's error text, ''
    without an error. What is not known passes, and has no ``tree``."""

    problem: str
    kind: CelType = UNKNOWN
    tree: CelNode | None = None
    types: Mapping[int, CelType] = field(default_factory=dict)


def examined(
    source: str,
    names: Mapping[str, CelType],
    objects: Mapping[str, CelType] | None = None,
    *,
    binds: bool = False,
) -> Examined:
    """Check the syntax and the types of an expression; the rest as for ``Checker``."""
    try:
        compiled(source)
    except ValueError as error:
        return Examined(str(error))
    try:
        tree = tree_of(source)
    except NotUnderstood:
        return Examined("")
    checker = Checker(source, objects, binds=binds)
    kind = checker.check(tree, names)
    return Examined(checker.error_text(), kind, tree, checker.types)


class Checker:
    """The errors of one expression, and the types of its nodes by their identity. ``objects`` are
    the types that it can make, by name; each has its fields, or takes any. ``binds``: whether
    there is ``cel.bind``."""

    def __init__(
        self, source: str, objects: Mapping[str, CelType] | None = None, *, binds: bool = False
    ) -> None:
        self._source = source
        self._binds = binds
        self._objects = objects or {}
        self._errors: dict[tuple[int, str], None] = {}
        self._mixed = False
        """Whether lists and maps may have elements of several types, as those to format."""
        self.types: dict[int, CelType] = {}

    def error_text(self) -> str:
        """All errors, as the server shows them; '' if there are none."""
        return "\n".join(self._shown(at, text) for at, text in sorted(self._errors))

    def _shown(self, at: int, text: str) -> str:
        before, _, line = self._source[:at].rpartition("\n")
        number = before.count("\n") + 2 if "\n" in self._source[:at] else 1
        whole = self._source.splitlines()[number - 1]
        where = f"ERROR: <input>:{number}:{len(line) + 1}: {text}"
        return f"{where}\n | {whole}\n | {'.' * len(line)}^"

    def _refuse(self, at: int, text: str) -> CelType:
        self._errors[at, text] = None
        return UNKNOWN

    def check(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType:
        """The type of a node where the names of ``scope`` are known."""
        kind = self._check(node, scope)
        self.types[id(node)] = kind
        return kind

    def _check(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType:
        if node.kind == "literal":
            return CelType(node.name, most=node.length)
        if node.kind == "name":
            return self._name(node, scope)
        if node.kind == "method" and (special := self._special(node, scope)) is not None:
            return special
        given = [self.check(part, scope) for part in node.parts]
        if node.kind in ("select", "has", "optional"):
            return self._selected(node, given[0])
        if node.kind == "list":
            return CelType("list", (self._same(node.parts, given),), most=len(given))
        if node.kind == "map":
            keys = self._same(node.parts[::2], given[::2])
            return CelType("map", (keys, self._same(node.parts[1::2], given[1::2])))
        if node.kind == "field":
            return given[0]
        if node.kind == "object":
            return self._object(node, given)
        return self._call(node, given)

    def _selected(self, node: CelNode, target: CelType) -> CelType:
        """The type of a field, as itself, as an optional value, or as the test for it."""
        optional = target.name == "optional_type"
        kind = self._select(node, target.items[0] if optional else target)
        if node.kind == "has":
            return BOOL
        return CelType("optional_type", (kind,)) if optional or node.kind == "optional" else kind

    def _object(self, node: CelNode, given: list[CelType]) -> CelType:
        kind = self._objects.get(node.name) or self._objects.get(f"{node.name.split('.')[0]}.*")
        if kind is None:
            return self._refuse(node.at, f"undeclared reference to '{node.name}' (in container '')")
        for part, given_kind in zip(node.parts, given, strict=True):
            if kind.fields is not None:
                wanted = kind.fields.get(part.name)
                if wanted is None or not fits(given_kind, wanted):
                    shown = f"'{wanted or ''}' but provided type is '{given_kind}'"
                    self._refuse(part.at, f"expected type of field '{part.name}' is {shown}")
        return CelType(node.name)

    def _name(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType:
        if node.name in scope:
            return scope[node.name]
        if node.name in _TYPE_NAMES:
            return TYPE
        if node.name == "google":
            return DYN
        return self._refuse(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: CelNode, target: CelType) -> CelType:
        if target.fields is not None:
            kind = target.fields.get(node.name)
            return kind or self._refuse(node.at, f"undefined field '{node.name}'")
        if target.name == "map":
            return target.items[1]
        if target.name in WILD:
            return target
        return self._refuse(node.at, f"type '{target}' does not support field selection")

    def _same(self, parts: tuple[CelNode, ...], given: list[CelType]) -> CelType:
        """The type of all elements: that of the first one."""
        first = given[0] if given else FREE
        if self._mixed:
            return first if all(_is_same(kind, first) for kind in given) else DYN
        for part, kind in zip(parts, given, strict=True):
            if not _is_same(kind, first):
                self._refuse(part.at, f"expected type '{first}' but found '{kind}'")
        return first

    def _no_overload(self, node: CelNode, given: list[CelType], name: str = "") -> CelType:
        """``name``: of a function with a dot in its name, whose first part is no target."""
        texts = [str(kind) for kind in given]
        shown = f"({', '.join(texts)})"
        if node.kind == "method" and not name:
            shown = f"{texts[0]}.({', '.join(texts[1:])})"
        text = f"found no matching overload for '{name or node.name}' applied to '{shown}'"
        return self._refuse(node.at, text)

    def _call(self, node: CelNode, given: list[CelType]) -> CelType:
        name, method = node.name, node.kind == "method"
        if name in ("_&&_", "_||_"):
            for part, kind in zip(node.parts, given, strict=True):
                self._bool(part, kind)
            return BOOL
        if not is_function(name, method=method) and not is_function(name, method=not method):
            if name in _UNCHECKED:
                return UNKNOWN
            return self._refuse(node.at, f"undeclared reference to '{name}' (in container '')")
        result_kind = result(name, given, method=method)
        if result_kind is None:
            return self._no_overload(node, given)
        self._literals(node)
        return _sized(result_kind, name, given)

    def _literals(self, node: CelNode) -> None:
        """Refuse literal texts that a function cannot read."""
        target, last = node.parts[0], node.parts[-1]
        if node.name == "format" and (target.kind, last.kind) == ("literal", "list"):
            types = [self.types[id(part)].name for part in last.parts]
            problem, index = format_problem(target.text, types)
            if problem:
                self._refuse(node.at if index < 0 else last.parts[index].at, problem)
        if node.name in _READ and (last.kind, last.name) == ("literal", "string"):
            try:
                compiled(_READ[node.name])({"text": last.text})
            except EvaluationError:
                self._refuse(last.at, f"invalid {node.name} argument")

    def _bool(self, node: CelNode, kind: CelType) -> None:
        if kind.name not in ("bool", *WILD):
            self._refuse(node.at, f"expected type 'bool' but found '{kind}'")

    def _special(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType | None:
        """The type of a macro or of a function with a dot in its name; None for a method."""
        target, *rest = node.parts
        spaced = target.kind == "name" and target.name not in scope
        if self._binds and (target.name, node.name, len(rest)) == ("cel", "bind", 3):
            value = self.check(rest[1], scope)
            return self.check(rest[2], {**scope, rest[0].name: value})
        name = f"{target.name}.{node.name}"
        known = is_function(name, method=False) and (
            not PATCHES.startswith(name) or "JSONPatch" in self._objects
        )
        if spaced and (target.name == "format" or known):
            given = [self.check(part, scope) for part in rest]
            kind = result(name, given)
            return kind or (self._no_overload(node, given, name) if known else UNKNOWN)
        if node.name in ("optMap", "optFlatMap", "sortBy"):
            return UNKNOWN
        if node.name == "format":
            self._mixed = True
            given = [self.check(part, scope) for part in node.parts]
            self._mixed = False
            return self._call(node, given)
        if node.name not in _MACROS or len(rest) < 2 or rest[0].kind != "name":
            return None
        return self._macro(node, self.check(target, scope), scope)

    def _macro(self, node: CelNode, target: CelType, scope: Mapping[str, CelType]) -> CelType:
        names, bodies = variables(node)
        if target.name not in _MANY:
            text = "cannot be range of a comprehension (must be list, map, or dynamic)"
            return self._refuse(node.parts[0].at, f"expression of type '{target}' {text}")
        given = elements(target, len(names))
        inner = {**scope, **dict(zip(names, given, strict=True))}
        kinds = [self.check(body, inner) for body in bodies]
        if node.name in ("all", "exists"):
            self._bool(bodies[0], kinds[0])
        elif (node.name in (*_TESTS, "filter") or len(bodies) > 1) and not fits(kinds[0], BOOL):
            step = INT if node.name in _TESTS else CelType("list", (_item(node, kinds, target),))
            choice = CelNode("call", node.at, "_?_:_")
            return self._no_overload(choice, [kinds[0], step, step])
        if node.name in _TESTS:
            return BOOL
        if node.name == "filter":
            return CelType("list", given, most=target.most) if target.name == "map" else target
        if node.name == "transformMap":
            return CelType("map", (given[0], kinds[-1]), most=target.most)
        return CelType("list", (kinds[-1],), most=target.most)


_MANY = ("list", "map", *WILD)


def variables(node: CelNode) -> tuple[list[str], tuple[CelNode, ...]]:
    """The names that a macro declares, and the expressions that use them."""
    rest = node.parts[1:]
    two = len(rest) > 2 and rest[1].kind == "name" and node.name not in ("map", "filter")
    count = 2 if two else 1
    return [variable.name for variable in rest[:count]], rest[count:]


def elements(target: CelType, count: int) -> tuple[CelType, ...]:
    """The types of the variables of a macro over lists or maps."""
    if target.name in WILD:
        return (target,) * count
    if target.name == "list":
        return target.items if count == 1 else (INT, target.items[0])
    return target.items[:count]


def _sized(kind: CelType, name: str, given: list[CelType]) -> CelType:
    """The type of a text, or of a list of texts, that comes from a text."""
    if kind.name not in ("string", "list") or not given or given[0].name != "string":
        return kind
    most = given[0].most
    if name == "_+_":
        return CelType(kind.name, kind.items, most=min(most + given[1].most, UNBOUNDED))
    items = tuple(CelType(item.name, most=most) for item in kind.items)
    return CelType(kind.name, items, most=most)


def _item(node: CelNode, kinds: list[CelType], target: CelType) -> CelType:
    """The type of the elements of the list that a macro makes."""
    return elements(target, 1)[0] if node.name == "filter" else kinds[-1]


def _is_same(one: CelType, other: CelType) -> bool:
    """Whether two values can be elements of one list. What is dynamic differs from all others."""
    if any(kind is UNKNOWN or kind is FREE for kind in (one, other)):
        return True
    if "dyn" in (one.name, other.name):
        return one.name == other.name
    if "null" in (one.name, other.name):
        return fits(one, other)
    same = one.name == other.name and len(one.items) == len(other.items)
    return same and all(map(_is_same, one.items, other.items))
