"""CEL expressions, with the commonly used functions of Kubernetes."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kube_in_process.text.cel_functions import MORE_FUNCTIONS
from kube_in_process.text.cel_source import readable, with_own_functions
from kube_in_process.text.quantity import number

Json = Any


class EvaluationError(Exception):
    """An expression failed. The text is the server's: ``no such key: x``."""


class Expression:
    """A compiled expression.

    ``functions`` are more functions, by name.

    Raises:
        ValueError: the source is not CEL; the text is the parser's, as the server shows it.
    """

    def __init__(
        self, source: str, functions: Mapping[str, Callable[..., Json]] | None = None
    ) -> None:
        # imported here: the library takes 0.2 s, and few clusters see an expression
        import cel

        # the library logs the errors that it raises
        logging.getLogger("cel").disabled = True
        try:
            self._program = cel.compile(readable(source))
            ours = with_own_functions(readable(source))
            if ours != source:
                self._program = cel.compile(ours)
        except ValueError as error:
            _, _, text = str(error).partition("': ERROR: ")
            raise ValueError("ERROR: " + text.replace("\n| ", "\n | ")) from error
        self._context = cel.Context(functions={**_FUNCTIONS, **(functions or {})})

    def __call__(self, names: Mapping[str, Json]) -> Json:
        """The value with these variables. Datetimes and timedeltas are times and durations.

        Raises:
            EvaluationError
        """
        self._context.update(dict(names))
        try:
            return self._program.execute(self._context)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise EvaluationError(_error_text(error)) from error


_CALL_FAILED = re.compile(
    r"Function '\w+' error: Python function call failed: (?P<type>\w+): (?P<text>[\s\S]*)\. "
    r"Check function arguments and their types\."
)
_CONVERSION = re.compile(r"Function '(?P<name>int|uint|double|timestamp|duration)' error: ")
_GO_TYPES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def _error_text(error: Exception) -> str:
    text = str(error)
    if isinstance(error, KeyError):
        return f"no such key: {error.args[0]}"
    if isinstance(error, ZeroDivisionError):
        return "modulus by zero" if text.startswith("modulo") else "division by zero"
    if isinstance(error, TypeError):
        return "no such overload"
    if text.startswith("Arithmetic overflow"):
        return "integer overflow"
    if match := _CALL_FAILED.fullmatch(text):
        return {"CallFailed": match["text"], "TypeError": "no such overload"}.get(
            match["type"], text
        )
    if match := _CONVERSION.match(text):
        name = match["name"]
        return f"type conversion error from 'string' to '{_GO_TYPES.get(name, name)}'"
    return text


@lru_cache(maxsize=1024)
def compiled(source: str) -> Expression:
    """The compiled expression of a source. Raises ValueError if it is not CEL."""
    return Expression(source)


def quantity(value: str | int | float) -> float:
    """A resource.Quantity as a number."""
    return float(number(value))


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""


def served_functions() -> frozenset[str]:
    """The functions and macros that every expression can use."""
    return _BUILTIN | _FUNCTIONS.keys()


_BUILTIN = frozenset(
    (
        *("has", "all", "exists", "exists_one", "map", "filter", "size", "contains", "matches"),
        *("startsWith", "endsWith", "int", "uint", "double", "bytes", "type", "dyn", "bool"),
        "string",
        *("duration", "timestamp", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
        *("getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
    )
)


_FUNCTIONS: dict[str, Callable[..., Json]] = {
    "trim": str.strip,
    "replace": str.replace,
    "find": _find,
    "join": lambda values, part="": part.join(str(value) for value in values),
    "isSorted": lambda values: all(one <= other for one, other in itertools.pairwise(values)),
    "sum": sum,
    "quantity": quantity,
    "compareTo": lambda one, other: (one > other) - (one < other),
    "semver": lambda text: text,
    **MORE_FUNCTIONS,
}
"""Functions by name. The receiver of a method call is the first argument."""
