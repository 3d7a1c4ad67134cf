"""Check the types of CEL expressions. What is not known passes: its type is ``dyn``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube_in_process.text.cel_tree import CelNode

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
        inner = ", ".join(str(each) for each in self.items)
        return f"{self.name}({inner})" if inner else self.name


DYN, BOOL, INT, DOUBLE = CelType("dyn"), CelType("bool"), CelType("int"), CelType("double")
STRING, NULL, TYPE = CelType("string"), CelType("null"), CelType("type")
_NUMBERS = ("int", "uint", "double")
_ORDERED = (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")
_ADDED = (*_NUMBERS, "string", "bytes", "list", "duration")
_TIMES: Mapping[tuple[str, str, str], str] = {
    ("_+_", "timestamp", "duration"): "timestamp",
    ("_+_", "duration", "timestamp"): "timestamp",
    ("_-_", "timestamp", "timestamp"): "duration",
    ("_-_", "timestamp", "duration"): "timestamp",
    ("_-_", "duration", "duration"): "duration",
}
_METHODS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], CelType]] = {
    **dict.fromkeys(("startsWith", "endsWith", "contains"), (("string",), ("string",), BOOL)),
    "matches": (("string",), ("string",), BOOL),
    "find": (("string",), ("string",), STRING),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), (("string",), (), STRING)),
}
"""What the methods are called on, their arguments and their results, where that is simple."""
_RESULTS: Mapping[str, CelType] = {
    **dict.fromkeys(("size", "int", "indexOf", "lastIndexOf"), INT),
    **dict.fromkeys(("split", "findAll"), CelType("list", (STRING,))),
    **dict.fromkeys(("string", "replace", "substring", "join", "charAt", "format"), STRING),
    **dict.fromkeys(("isSorted", "isQuantity", "isURL", "isIP", "isCIDR", "isSemver"), BOOL),
    **dict.fromkeys(("isGreaterThan", "isLessThan", "isInteger", "hasValue"), BOOL),
    **{name: CelType(name) for name in ("bool", "bytes", "double", "uint")},
    **{name: CelType(name) for name in ("timestamp", "duration")},
    "type": TYPE,
    **dict.fromkeys(("getFullYear", "getMonth", "getDate", "getDayOfMonth"), INT),
    **dict.fromkeys(("getDayOfWeek", "getDayOfYear", "getHours", "getMinutes"), INT),
    **dict.fromkeys(("getSeconds", "getMilliseconds", "compareTo", "sign"), INT),
}
_OTHERS = frozenset(
    (
        *("dyn", "sum", "min", "max", "quantity", "semver", "url", "ip", "cidr", "orValue", "or"),
        *("optMap", "optFlatMap", "value", "add", "sub", "asInteger", "asApproximateFloat"),
        *("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"),
        *("family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isGlobalUnicast"),
        *("isLinkLocalUnicast", "containsIP", "containsCIDR", "masked", "prefixLength", "reverse"),
        *("major", "minor", "patch", "validate", "distinct", "flatten", "slice", "sort", "first"),
        *("last", "sortBy", "getMilliseconds", "allowed", "check", "authorizer"),
    )
)
_NAMESPACES = ("base64", "cel", "format", "ip", "jsonpatch", "lists", "math", "optional", "sets")
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


class Checker:
    """The errors of one expression, and the types of its nodes by their identity."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._errors: dict[tuple[int, str], None] = {}
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
        return DYN

    def check(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType:
        """The type of a node where the names of ``scope`` are known."""
        found = self._check(node, scope)
        self.types[id(node)] = found
        return found

    def _check(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType:
        if node.kind == "literal":
            return CelType(node.name, most=node.length)
        if node.kind == "name":
            return self._name(node, scope)
        if node.kind == "method" and (found := self._special(node, scope)) is not None:
            return found
        given = [self.check(part, scope) for part in node.parts]
        if node.kind in ("select", "has"):
            found = self._select(node, given[0])
            return BOOL if node.kind == "has" else found
        if node.kind == "list":
            return CelType("list", (self._same(node.parts, given),), most=len(given))
        if node.kind == "map":
            keys = self._same(node.parts[::2], given[::2])
            return CelType("map", (keys, self._same(node.parts[1::2], given[1::2])))
        if node.kind == "index":
            return self._index(node, given)
        return self._call(node, given)

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
            found = target.fields.get(node.name)
            return found or self._refuse(node.at, f"undefined field '{node.name}'")
        if target.name == "map":
            return target.items[1]
        if target.name == "dyn":
            return DYN
        return self._refuse(node.at, f"type '{target}' does not support field selection")

    def _same(self, parts: tuple[CelNode, ...], given: list[CelType]) -> CelType:
        """The type of all elements: that of the first one."""
        if not given:
            return DYN
        for part, each in zip(parts, given, strict=True):
            if not _fits(each, given[0]):
                self._refuse(part.at, f"expected type '{given[0]}' but found '{each}'")
        return given[0]

    def _index(self, node: CelNode, given: list[CelType]) -> CelType:
        target, key = given
        if target.name == "list" and key.name in ("int", "uint", "double", "dyn"):
            return target.items[0]
        if target.name == "map" and _fits(key, target.items[0]):
            return target.items[1]
        return DYN if target.name == "dyn" else self._no_overload(node, given)

    def _no_overload(self, node: CelNode, given: list[CelType]) -> CelType:
        texts = [str(each) for each in given]
        shown = f"({', '.join(texts)})"
        if node.kind == "method":
            shown = f"{texts[0]}.({', '.join(texts[1:])})"
        text = f"found no matching overload for '{node.name}' applied to '{shown}'"
        return self._refuse(node.at, text)

    def _call(self, node: CelNode, given: list[CelType]) -> CelType:
        name = node.name
        if name in ("_&&_", "_||_"):
            for part, each in zip(node.parts, given, strict=True):
                self._bool(part, each)
            return BOOL
        if name.startswith(("_", "!", "-", "@")):
            found = _operator(name, given)
            return found or self._no_overload(node, given)
        if node.kind == "method" and name in _METHODS:
            targets, wanted, result = _METHODS[name]
            fits = len(given) == len(wanted) + 1 and all(
                each.name in (expected, "dyn")
                for each, expected in zip(given, (targets[0], *wanted), strict=True)
            )
            return _sized(result, given[0]) if fits else self._no_overload(node, given)
        if name == "size" and given and given[0].name not in ("string", "bytes", *_MANY):
            return self._no_overload(node, given)
        if name in _RESULTS:
            return _sized(_RESULTS[name], given[0]) if given else _RESULTS[name]
        if name in _OTHERS or name in _METHODS:
            return DYN
        return self._refuse(node.at, f"undeclared reference to '{name}' (in container '')")

    def _bool(self, node: CelNode, found: CelType) -> None:
        if found.name not in ("bool", "dyn"):
            self._refuse(node.at, f"expected type 'bool' but found '{found}'")

    def _special(self, node: CelNode, scope: Mapping[str, CelType]) -> CelType | None:
        """The type of a macro or of a function with a dot in its name; None for a method."""
        target, *rest = node.parts
        if target.kind == "name" and target.name in _NAMESPACES and target.name not in scope:
            if (target.name, node.name, len(rest)) == ("cel", "bind", 3):
                value = self.check(rest[1], scope)
                return self.check(rest[2], {**scope, rest[0].name: value})
            for part in rest:
                self.check(part, scope)
            return DYN
        if node.name in ("optMap", "optFlatMap", "sortBy"):
            return DYN
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
        found = [self.check(body, inner) for body in bodies]
        if node.name in (*_TESTS, "filter") or len(bodies) > 1:
            self._bool(bodies[0], found[0])
        if node.name in _TESTS:
            return BOOL
        if node.name == "filter":
            return CelType("list", given, most=target.most) if target.name == "map" else target
        if node.name == "transformMap":
            return CelType("map", (given[0], found[-1]), most=target.most)
        return CelType("list", (found[-1],), most=target.most)


_MANY = ("list", "map", "dyn")


def variables(node: CelNode) -> tuple[list[str], tuple[CelNode, ...]]:
    """The names that a macro declares, and the expressions that use them."""
    rest = node.parts[1:]
    two = len(rest) > 2 and rest[1].kind == "name" and node.name not in ("map", "filter")
    count = 2 if two else 1
    return [each.name for each in rest[:count]], rest[count:]


def elements(target: CelType, count: int) -> tuple[CelType, ...]:
    """The types of the variables of a macro over lists or maps."""
    if target.name == "dyn":
        return (DYN,) * count
    if target.name == "list":
        return target.items if count == 1 else (INT, target.items[0])
    return target.items[:count]


def _sized(result: CelType, target: CelType) -> CelType:
    """The type of a text, or of a list of texts, that comes from a text."""
    if target.name != "string" or result.name not in ("string", "list"):
        return result
    items = tuple(CelType(each.name, most=target.most) for each in result.items)
    return CelType(result.name, items, most=target.most)


def _fits(one: CelType, other: CelType) -> bool:
    if "dyn" in (one.name, other.name):
        return True
    if "null" in (one.name, other.name):
        rest = other if one.name == "null" else one
        return rest.fields is not None or rest.name in ("null", "timestamp", "duration")
    same = one.name == other.name and len(one.items) == len(other.items)
    return same and all(_fits(a, b) for a, b in zip(one.items, other.items, strict=True))


def _operator(name: str, given: list[CelType]) -> CelType | None:
    """The type of the result of an operator; None if it does not take these types."""
    first, last = given[0], given[-1]
    kinds = {each.name for each in given} - {"dyn"}
    if name == "_?_:_":
        return given[1] if first.name in ("bool", "dyn") and _fits(given[1], last) else None
    if name == "!_":
        return BOOL if kinds <= {"bool"} else None
    if name == "-_":
        return first if kinds <= {"int", "double"} else None
    if name == "@in":
        if last.name not in _MANY:
            return None
        return BOOL if last.name == "dyn" or _fits(first, last.items[0]) else None
    if name in ("_==_", "_!=_"):
        return BOOL if _fits(first, last) else None
    if name in ("_<_", "_<=_", "_>_", "_>=_"):
        fits = kinds <= set(_NUMBERS) or (len(kinds) == 1 and kinds <= set(_ORDERED))
        return BOOL if fits else None
    return _sum(name, first, last)


def _sum(name: str, first: CelType, last: CelType) -> CelType | None:
    if "dyn" in (first.name, last.name):
        return DYN
    time = _TIMES.get((name, first.name, last.name))
    if time is not None:
        return CelType(time)
    kinds = {"_+_": _ADDED, "_%_": ("int", "uint")}.get(name, _NUMBERS)
    if not _fits(first, last) or first.name not in kinds:
        return None
    return CelType(first.name, first.items, most=min(first.most + last.most, UNBOUNDED))
