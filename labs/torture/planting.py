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
    """The function is gone, or the piece to replace is not in it exactly once."""


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
                found = list(_equal_expressions(function, wanted, other))
            case _:
                found = list(_equal_statements(function, old, new or [ast.Pass()]))
        if len(found) != 1:
            times = f"{len(found)} times, not once"
            raise NoPlace(f"{self.name}: {self.function} in {self.module} has {times}: {self.old}")
        found[0]()
        return ast.fix_missing_locations(tree)

    def _function(self, tree: ast.Module) -> _Function:
        body: list[ast.stmt] = tree.body
        *classes, name = self.function.split(".")
        for each in classes:
            body = next(
                (one.body for one in body if isinstance(one, ast.ClassDef) and one.name == each), []
            )
        for one in body:
            if isinstance(one, _Function) and one.name == name:
                return one
        raise NoPlace(f"{self.name}: {self.module} has no function {self.function}")


def plant(mutant: Mutant) -> None:
    """Plant a bug in this process; its module must not be imported yet."""

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
                for at, each in enumerate(value):
                    if isinstance(each, ast.expr) and ast.dump(each) == wanted:
                        yield _replacer(value, slice(at, at + 1), [new])


def _equal_statements(
    function: _Function, old: list[ast.stmt], new: list[ast.stmt]
) -> Iterator[Callable[[], None]]:
    wanted = [ast.dump(each) for each in old]
    for parent in ast.walk(function):
        for _, value in ast.iter_fields(parent):
            if not isinstance(value, list):
                continue
            for at in range(len(value) - len(old) + 1):
                window = slice(at, at + len(old))
                if [ast.dump(each) for each in value[window]] == wanted:
                    yield _replacer(value, window, new)


def _setter(parent: ast.AST, name: str, new: ast.expr) -> Callable[[], None]:
    return lambda: setattr(parent, name, new)


def _replacer(values: list[ast.AST], window: slice, new: Sequence[ast.AST]) -> Callable[[], None]:
    def replace() -> None:
        values[window] = new

    return replace
