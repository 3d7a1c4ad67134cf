"""CEL expressions of rules, over one object. What an expression cannot say is a problem.

Fields ``metadata``, ``spec`` and ``status`` always exist for an expression. A null counts as
absent, as everywhere in Kubernetes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from claimctl.wire.nesting import MOST_LEVELS
from claimctl.wire.workload_kinds import LONGEST_EXPRESSION

if TYPE_CHECKING:
    import cel

DEEPEST_MACRO = 2
"""How many macros may be inside each other: the time grows with this power of a list's length."""
DEEPEST_BRACKET = 50
TOO_DEEP = f"the workload is nested more than {MOST_LEVELS} levels deep"
_LITERAL = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_TOKEN = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(|[(\[{]|[)\]}]")


class ExpressionError(Exception):
    """An expression is not valid, or says nothing about an object. The text is one line.

    ``always``: the expression says nothing about any object.
    """

    def __init__(self, text: str, *, always: bool = False) -> None:
        super().__init__(text)
        self.always = always


class Expression:
    """A compiled expression.

    Raises:
        ExpressionError: the source is too long, too deep, or not CEL.
    """

    def __init__(self, source: str) -> None:
        _check_size(source)
        # imported here: it takes 0.2 s, and most commands evaluate nothing
        import cel

        # the library logs the errors that it raises
        logging.getLogger("cel").disabled = True
        try:
            self._program: cel.Program = cel.compile(source)
        except BaseException as error:
            raise ExpressionError(str(_problem("is not CEL", error)), always=True) from None
        self._context = cel.Context()

    @property
    def variables(self) -> frozenset[str]:
        """The names that the expression uses, also those that its macros bind."""
        return frozenset(self._program.variables())

    def value(self, subject: Mapping[str, Any]) -> Any:
        """The value for an object.

        Raises:
            ExpressionError: the expression fails on this object.
        """
        self._context.update({"self": subject})
        try:
            return self._program.execute(self._context)
        except BaseException as error:
            raise _problem("fails", error) from None


def _problem(what: str, error: BaseException) -> ExpressionError:
    """The problem as one line. The library is written in Rust: its panics are BaseExceptions."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
    text = f"no such key: {error.args[0]}" if isinstance(error, KeyError) else str(error)
    always = not isinstance(error, KeyError) and "Undefined variable or function" in text
    return ExpressionError(f"{what}: {' '.join(text.split())[:200]}", always=always)


@lru_cache(maxsize=512)
def compiled(source: str) -> Expression:
    """The compiled expression of a source. Raises ExpressionError."""
    return Expression(source)


def _check_size(source: str) -> None:
    if len(source) > LONGEST_EXPRESSION:
        raise ExpressionError(f"has more than {LONGEST_EXPRESSION} characters", always=True)
    open_: list[bool] = []
    for match in _TOKEN.finditer(_LITERAL.sub("''", source)):
        if match[0] in ")]}":
            del open_[-1:]
            continue
        open_.append(match[0].startswith("."))
        if sum(open_) > DEEPEST_MACRO:
            text = f"has more than {DEEPEST_MACRO} macros inside each other"
            raise ExpressionError(text, always=True)
        if len(open_) > DEEPEST_BRACKET:
            text = f"has more than {DEEPEST_BRACKET} brackets inside each other"
            raise ExpressionError(text, always=True)


def subject_of(document: Any) -> dict[str, Any]:
    """A Kubernetes object as expressions see it.

    Raises:
        ExpressionError: it is nested more than ``MOST_LEVELS`` deep.
    """
    plain = _without_nulls(document, MOST_LEVELS) if isinstance(document, dict) else {}
    return {"metadata": {}, "spec": {}, "status": {}} | plain


def _without_nulls(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise ExpressionError(TOO_DEEP)
    if isinstance(value, list):
        return [_without_nulls(part, levels - 1) for part in value]
    parts = value.items()
    return {key: _without_nulls(part, levels - 1) for key, part in parts if part is not None}


def reads_status(source: str) -> bool:
    """Whether the expression may depend on the status, which a controller writes later."""
    return "status" in source
