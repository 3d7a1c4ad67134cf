"""Plants a bug: replaces one piece of one function in the syntax tree of a module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent

from tests.support.imports import ChangedImports

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class NoPlace(LookupError):
    """A bug cannot be planted: its function is gone, its piece is not in it exactly once, or its
    module is imported already."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug: ``old`` is in the function once and becomes ``new``.

    Attributes:
        name: what claimctl does wrong.
        module: the module.
        function: the function, after its class and a dot if it is a method.
        old: an expression, or whole statements one after the other. Spaces, line breaks and
            comments do not matter.
        new: what replaces it; "" leaves the statements out.
    """

    name: str
    module: str
    function: str
    old: str
    new: str

    def planted(self, tree: ast.Module) -> ast.Module:
        """The tree with the bug.

        Raises:
            NoPlace: the place is gone, or there are several.
        """
        function = self._function(tree)
        old, new = _statements(self.old), _statements(self.new)
        match old, new:
            case [ast.Expr(wanted)], [ast.Expr(other)]:
                places = list(_equal_expressions(function, wanted, other))
            case _:
                places = list(_equal_statements(function, old, new or [ast.Pass()]))
        if len(places) != 1:
            times = f"{len(places)} times, not once"
            raise NoPlace(f"{self.name}: {self.function} in {self.module} has {times}: {self.old}")
        places[0]()
        return ast.fix_missing_locations(tree)

    def _function(self, tree: ast.Module) -> _Function:
        body: list[ast.stmt] = tree.body
        *classes, name = self.function.split(".")
        for device_class in classes:
            body = next(
                (
                    statement.body
                    for statement in body
                    if isinstance(statement, ast.ClassDef) and statement.name == device_class
                ),
                [],
            )
        for statement in body:
            if isinstance(statement, _Function) and statement.name == name:
                return statement
        raise NoPlace(f"{self.name}: {self.module} has no function {self.function}")


def plant(mutant: Mutant) -> None:
    """Plant a bug in this process.

    Raises:
        NoPlace: its module is imported already.
    """
    if mutant.module in sys.modules:
        raise NoPlace(f"{mutant.name}: {mutant.module} is imported already")

    def wanted(module: str) -> bool:
        return module == mutant.module

    sys.meta_path.insert(0, ChangedImports(wanted, lambda _, tree: mutant.planted(tree)))


def _statements(source: str) -> list[ast.stmt]:
    # `return` and `yield` compile outside of a function; only the tree is needed
    return ast.parse(dedent(source).strip("\n")).body


def _equal_expressions(
    function: _Function, old: ast.expr, new: ast.expr
) -> Iterator[Callable[[], None]]:
    wanted = ast.dump(old)
    for parent in ast.walk(function):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr) and ast.dump(value) == wanted:
                yield _setter(parent, name, new)
            elif isinstance(value, list):
                for at, item in enumerate(value):
                    if isinstance(item, ast.expr) and ast.dump(item) == wanted:
                        yield _replacer(value, slice(at, at + 1), [new])


def _equal_statements(
    function: _Function, old: list[ast.stmt], new: list[ast.stmt]
) -> Iterator[Callable[[], None]]:
    wanted = [ast.dump(statement) for statement in old]
    for parent in ast.walk(function):
        for _, value in ast.iter_fields(parent):
            if not isinstance(value, list) or not all(isinstance(x, ast.stmt) for x in value):
                continue
            for at in range(len(value) - len(old) + 1):
                window = slice(at, at + len(old))
                if [ast.dump(statement) for statement in value[window]] == wanted:
                    yield _replacer(value, window, new)


def _setter(parent: ast.AST, name: str, new: ast.expr) -> Callable[[], None]:
    return lambda: setattr(parent, name, new)


def _replacer(values: list[ast.AST], window: slice, new: Sequence[ast.AST]) -> Callable[[], None]:
    def replace() -> None:
        values[window] = new

    return replace
