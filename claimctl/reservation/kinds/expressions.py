"""CEL expressions of rules, over one object. What an expression cannot say is a problem.

``compiled(source).value(subject)`` is the answer. It is refused if it would take too long: the
event loop waits meanwhile, and a Lease has to be renewed in time. The library copies a list with
each step of a macro that builds one, and the whole object with each use of ``self``. So there is a
limit: ``values * terms * longest ** power <= MOST_COPIES``. That many values are copied at most, by
the number of values in the object, the terms of the expression, the length of the longest list, and
the power, which says how often the lists are gone through inside each other (``_power_of``):

- ``self.spec.replicas == 0``: power 0, since no list is gone through
- ``self.status.conditions.exists(c, c.type == "Done")``: 0, since each element is read once
- ``self.spec.jobs.all(j, j.pods.exists(p, p.ok))``: 1, since the inner list is read for each job
- ``self.spec.jobs.filter(j, j.suspend)``: 1, since each step copies what was built so far
- ``self.spec.jobs.all(j, j.name in self.spec.names)``: 1, since ``self`` is the whole object
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from claimctl.reservation.kinds.subjects import Subject
from claimctl.wire.workload_kinds import LONGEST_EXPRESSION

if TYPE_CHECKING:
    import cel

DEEPEST_MACRO = 2
"""How many macros may be inside each other. How many values they copy is bounded besides, by
``MOST_COPIES``."""
DEEPEST_BRACKET = 50
MOST_COPIES = 10_000_000
"""How many values may be copied for one answer: at about 50 ns each."""
_LITERAL = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_TOKEN = re.compile(
    r"\.\s*(?:all|exists|exists_one|(?P<builds>map|filter))\s*\(|[(\[{]|(?P<closes>[)\]}])"
    r"|(?P<self>\bself\b)"
)
_TERM = re.compile(r"\b[A-Za-z_][\w.]*")


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
        self._power = _power_of(source)
        self._terms = len(_TERM.findall(source))
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

    def value(self, subject: Subject) -> Any:
        """The value for an object.

        Raises:
            ExpressionError: the expression fails on this object, or would take too long.
        """
        if self._copies(subject) > MOST_COPIES:
            sizes = f"{subject.values} values in the fields that the rule reads"
            raise ExpressionError(f"would take too long: {sizes}, {subject.longest} in one list")
        self._context.update({"self": subject.document})
        try:
            return self._program.execute(self._context)
        except BaseException as error:
            raise _problem("fails", error) from None

    def _copies(self, subject: Subject) -> int:
        """How many values the library copies for an answer, at most: each term may copy the whole
        object, and so again for each element of the lists that macros go through."""
        copies: int = subject.values * self._terms * subject.longest**self._power
        return copies


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


def _power_of(source: str) -> int:
    """The power of a list's length with which the copies of values grow, at most (see above).

    Raises:
        ExpressionError: the source is too long or too deep.
    """
    if len(source) > LONGEST_EXPRESSION:
        raise ExpressionError(f"has more than {LONGEST_EXPRESSION} characters", always=True)
    power = 0
    # the brackets that are open. That of a macro, as in ``.all(``, is here as ".", or as "builds"
    # if the macro builds a list
    around: list[str] = []
    for match in _TOKEN.finditer(_LITERAL.sub("''", source)):
        if match["closes"]:
            del around[-1:]
            continue
        if not match["self"]:
            bracket_or_dot = match[0][0]
            around.append("builds" if match["builds"] else bracket_or_dot)
        macros = sum(bracket in ("builds", ".") for bracket in around)
        _check_depth(macros, len(around))
        if macros:
            again = around.count("builds") + bool(match["self"])
            power = max(power, macros - 1 + again)
    return power


def _check_depth(macros: int, brackets: int) -> None:
    """Raise ExpressionError if too many are inside each other."""
    for count, most, what in (
        (macros, DEEPEST_MACRO, "macros"),
        (brackets, DEEPEST_BRACKET, "brackets"),
    ):
        if count > most:
            text = f"has more than {most} {what} inside each other"
            raise ExpressionError(text, always=True)


def reads_status(source: str) -> bool:
    """Whether the expression may depend on the status, which a controller writes later."""
    return "status" in source
