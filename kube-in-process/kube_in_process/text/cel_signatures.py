"""The functions and operators of CEL, and what types they take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kube_in_process.text.cel_type import DYN, FREE, UNKNOWN, WILD, CelType, fits, holds

_OPERATORS = """
_+_(int, int) int; _+_(uint, uint) uint; _+_(double, double) double; _+_(string, string) string
_+_(bytes, bytes) bytes; _+_(list(A), list(A)) list(A); _+_(timestamp, duration) timestamp
_+_(duration, timestamp) timestamp; _+_(duration, duration) duration
_-_(int, int) int; _-_(uint, uint) uint; _-_(double, double) double
_-_(timestamp, timestamp) duration; _-_(timestamp, duration) timestamp
_-_(duration, duration) duration
_*_(int, int) int; _*_(uint, uint) uint; _*_(double, double) double
_/_(int, int) int; _/_(uint, uint) uint; _/_(double, double) double
_%_(int, int) int; _%_(uint, uint) uint
-_(int) int; -_(double) double; !_(bool) bool
_==_(A, A) bool; _!=_(A, A) bool
@in(A, list(A)) bool; @in(A, map(A, B)) bool
_[_](list(A), number) A; _[_](map(A, B), A) B
_[_](optional_type(list(A)), number) optional_type(A)
_[_](optional_type(map(A, B)), A) optional_type(B)
_[?_](list(A), number) optional_type(A); _[?_](map(A, B), A) optional_type(B)
_[?_](optional_type(list(A)), number) optional_type(A)
_[?_](optional_type(map(A, B)), A) optional_type(B)
_?_:_(bool, A, A) A
"""
_FUNCTIONS = """
size(sized) int; sized.size() int
int(converted) int; uint(converted) uint; double(converted) double
string(bool) string; string(bytes) string; string(converted) string
bool(bool) bool; bool(string) bool; bytes(bytes) bytes; bytes(string) bytes
timestamp(timestamp) timestamp; timestamp(string) timestamp; timestamp(int) timestamp
duration(duration) duration; duration(string) duration; duration(int) duration
type(A) type; dyn(A) dyn
string.startsWith(string) bool; string.endsWith(string) bool; string.contains(string) bool
string.matches(string) bool; matches(string, string) bool
string.charAt(int) string; string.trim() string
string.indexOf(string) int; string.indexOf(string, int) int
string.lastIndexOf(string) int; string.lastIndexOf(string, int) int
string.lowerAscii() string; string.upperAscii() string
string.replace(string, string) string; string.replace(string, string, int) string
string.split(string) list(string); string.split(string, int) list(string)
string.substring(int) string; string.substring(int, int) string
string.format(list(dyn)) string; strings.quote(string) string
list(string).join() string; list(string).join(string) string
string.find(string) string; string.findAll(string) list(string)
string.findAll(string, int) list(string)
list(ordered).isSorted() bool; list(A).indexOf(A) int; list(A).lastIndexOf(A) int
list(int).sum() int; list(uint).sum() uint; list(double).sum() double
list(duration).sum() duration; list(A).min() A; list(A).max() A
list(A).slice(int, int) list(A); list(A).distinct() list(A); list(A).reverse() list(A)
list(A).sort() list(A); list(A).flatten() list(dyn); list(A).flatten(int) list(dyn)
list(A).first() optional_type(A); list(A).last() optional_type(A)
lists.range(int) list(int)
sets.contains(list(A), list(A)) bool; sets.equivalent(list(A), list(A)) bool
sets.intersects(list(A), list(A)) bool
optional.of(A) optional_type(A); optional.ofNonZeroValue(A) optional_type(A)
optional.none() optional_type(A); optional_type(A).hasValue() bool
optional_type(A).value() A; optional_type(A).orValue(A) A
optional_type(A).or(optional_type(A)) optional_type(A)
quantity(string) kubernetes.Quantity; isQuantity(string) bool
kubernetes.Quantity.sign() int; kubernetes.Quantity.isInteger() bool
kubernetes.Quantity.asInteger() int; kubernetes.Quantity.asApproximateFloat() double
kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) bool
kubernetes.Quantity.isLessThan(kubernetes.Quantity) bool
kubernetes.Quantity.compareTo(kubernetes.Quantity) int
kubernetes.Quantity.add(kubernetes.Quantity) kubernetes.Quantity
kubernetes.Quantity.add(int) kubernetes.Quantity
kubernetes.Quantity.sub(kubernetes.Quantity) kubernetes.Quantity
kubernetes.Quantity.sub(int) kubernetes.Quantity
semver(string) kubernetes.Semver; semver(string, bool) kubernetes.Semver
isSemver(string) bool; isSemver(string, bool) bool
kubernetes.Semver.major() int; kubernetes.Semver.minor() int; kubernetes.Semver.patch() int
kubernetes.Semver.isGreaterThan(kubernetes.Semver) bool
kubernetes.Semver.isLessThan(kubernetes.Semver) bool
kubernetes.Semver.compareTo(kubernetes.Semver) int
url(string) kubernetes.URL; isURL(string) bool
kubernetes.URL.getScheme() string; kubernetes.URL.getHost() string
kubernetes.URL.getHostname() string; kubernetes.URL.getPort() string
kubernetes.URL.getEscapedPath() string; kubernetes.URL.getQuery() map(string, list(string))
ip(string) net.IP; isIP(string) bool; net.IP.family() int; ip.isCanonical(string) bool
net.IP.isUnspecified() bool; net.IP.isLoopback() bool; net.IP.isLinkLocalMulticast() bool
net.IP.isLinkLocalUnicast() bool; net.IP.isGlobalUnicast() bool
cidr(string) net.CIDR; isCIDR(string) bool; net.CIDR.ip() net.IP; net.CIDR.masked() net.CIDR
net.CIDR.containsIP(string) bool; net.CIDR.containsIP(net.IP) bool
net.CIDR.containsCIDR(string) bool; net.CIDR.containsCIDR(net.CIDR) bool
net.CIDR.prefixLength() int
kubernetes.NamedFormat.validate(string) optional_type(list(string))
format.named(string) optional_type(kubernetes.NamedFormat)
"""
_AUTHORIZER = "kubernetes.authorization"
_AUTHORIZATION = f"""
{_AUTHORIZER}.Authorizer.path(string) {_AUTHORIZER}.PathCheck
{_AUTHORIZER}.Authorizer.group(string) {_AUTHORIZER}.GroupCheck
{_AUTHORIZER}.Authorizer.serviceAccount(string, string) {_AUTHORIZER}.Authorizer
{_AUTHORIZER}.GroupCheck.resource(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.subresource(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.namespace(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.name(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.fieldSelector(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.labelSelector(string) {_AUTHORIZER}.ResourceCheck
{_AUTHORIZER}.ResourceCheck.check(string) {_AUTHORIZER}.Decision
{_AUTHORIZER}.PathCheck.check(string) {_AUTHORIZER}.Decision
{_AUTHORIZER}.Decision.allowed() bool; {_AUTHORIZER}.Decision.reason() string
{_AUTHORIZER}.Decision.errored() bool; {_AUTHORIZER}.Decision.error() string
"""
_DATES = ("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear")
_CLOCK = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
_COMPARED = ("bool", "string", "bytes", "timestamp", "duration")
_ANY_OF = {
    "number": ("int", "uint", "double"),
    "sized": ("string", "bytes", "list(A)", "map(A, B)"),
    "converted": ("int", "uint", "double", "string", "timestamp", "duration"),
    "ordered": ("int", "uint", "double", *_COMPARED),
}
"""Names that stand for each of some types."""
PATCHES = "jsonpatch.escapeKey(string) string"
"""What only the policies that make patches can call."""
_SIGNATURE = re.compile(
    r"(?:(?P<target>[\w.]+(?:\([^.]*\))?)\.)?(?P<name>\S+?)\((?P<given>.*)\) (?P<result>.+)"
)
_Signature = tuple[tuple[CelType, ...], CelType]


def _lines() -> Iterator[str]:
    for text in (_OPERATORS, _FUNCTIONS, _AUTHORIZATION, PATCHES):
        yield from re.split(r"[;\n]\s*", text.strip())
    for sign in ("<", "<=", ">", ">="):
        yield from (f"_{sign}_({name}, {name}) bool" for name in _COMPARED)
        yield f"_{sign}_(number, number) bool"
    for name in (*_DATES, *_CLOCK):
        yield from (f"timestamp.{name}() int", f"timestamp.{name}(string) int")
    yield from (f"duration.{name}() int" for name in _CLOCK)


def _expanded(line: str) -> Iterator[str]:
    """A line for each of the types that one name stands for."""
    for name, types in _ANY_OF.items():
        match = re.search(rf"\b{name}\b(?!\s*$)", line)
        if match:
            for kind in types:
                yield from _expanded(line[: match.start()] + kind + line[match.end() :])
            return
    yield line


@lru_cache(maxsize=1)
def _table() -> Mapping[tuple[str, bool], list[_Signature]]:
    """The signatures by name; those of methods have the type of the target first."""
    table: dict[tuple[str, bool], list[_Signature]] = {}
    for short in _lines():
        for line in _expanded(short):
            match = _SIGNATURE.fullmatch(line)
            assert match is not None, line
            target, name = match["target"], match["name"]
            if target in NAMESPACES:
                target, name = None, f"{target}.{name}"
            given = ([target] if target else []) + _split(match["given"])
            types = tuple(parsed(part) for part in given)
            signature = (types, parsed(match["result"]))
            table.setdefault((name, target is not None), []).append(signature)
    return table


NAMESPACES = ("format", "ip", "jsonpatch", "lists", "optional", "sets", "strings")
"""The first parts of names of functions that are no methods."""


def _split(text: str) -> list[str]:
    """The parts between the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


@lru_cache(maxsize=256)
def parsed(text: str) -> CelType:
    """The type of a text; a single capital letter stands for any type."""
    name, bracket, inner = text.partition("(")
    if text == "dyn":
        return DYN
    return CelType(name, tuple(map(parsed, _split(inner[:-1])))) if bracket else CelType(name)


def is_function(name: str, *, method: bool) -> bool:
    return (name, method) in _table()


def result(name: str, given: list[CelType], *, method: bool = False) -> CelType | None:
    """The type of a call; None if no signature takes these types."""
    results: list[CelType] = []
    for types, wanted in _table().get((name, method), ()):
        bound: dict[str, CelType] = {}
        if len(types) == len(given) and all(
            _matches(pattern, kind, bound) for pattern, kind in zip(types, given, strict=True)
        ):
            kind = _filled(wanted, bound)
            results += [kind] if kind not in results else []
    if len(results) > 1:
        return UNKNOWN if any(holds(kind, UNKNOWN) for kind in given) else DYN
    return results[0] if results else None


def _is_variable(pattern: CelType) -> bool:
    return len(pattern.name) == 1


def _matches(pattern: CelType, given: CelType, bound: dict[str, CelType]) -> bool:
    """Whether a type fits a signature. What its letters stand for is added to ``bound``: the
    widest of the types."""
    if _is_variable(pattern):
        before = bound.get(pattern.name)
        if before is None or holds(before, FREE) or given is DYN or given is UNKNOWN:
            bound[pattern.name] = given if given is not FREE or before is None else before
        return before is None or fits(given, before)
    if given.name in WILD or pattern.name in WILD:
        return True
    if given.name != pattern.name or len(given.items) != len(pattern.items):
        return given.name == "null" and fits(given, pattern)
    return all(map(_matches, pattern.items, given.items, [bound] * len(given.items)))


def _filled(pattern: CelType, bound: Mapping[str, CelType]) -> CelType:
    if _is_variable(pattern):
        return bound.get(pattern.name, FREE)
    items = tuple(_filled(item, bound) for item in pattern.items)
    return pattern if items == pattern.items else CelType(pattern.name, items)
