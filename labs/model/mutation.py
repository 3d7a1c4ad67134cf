"""A rule of the protocol left out on purpose, and the search that has to find it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from labs.model.dialects import ModelDialect
from labs.model.search import Found, Search
from labs.model.server import Bounds
from labs.model.space import Model
from labs.planting import Mutant

Patch = tuple[Any, str, Any]
"""A module, a class or a function, the name in it, and what the name stands for meanwhile."""


def without(module: ModuleType, function: str, old: str, new: str) -> Patch:
    """A patch that replaces a piece of a function (see ``Mutant``)."""
    tree = Mutant(function, module.__name__, function, old, new).planted(
        ast.parse(inspect.getsource(module))
    )
    tree.body = [statement for statement in tree.body if getattr(statement, "name", "") == function]
    # its annotations are not evaluated, as in every module
    tree.body.insert(0, ast.parse("from __future__ import annotations").body[0])
    made: dict[str, Any] = {}
    exec(compile(tree, module.__name__, "exec"), vars(module), made)  # the project's own source
    # the code, and not the name in the module: other modules have imported the function
    return getattr(module, function), "__code__", made[function].__code__


@dataclass(frozen=True)
class Mutation:
    """A rule that is left out, and where that shows."""

    name: str
    dialect: ModelDialect
    bounds: Bounds
    patches: tuple[Patch, ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this context only, claimctl's core is broken."""
        before = [(place, name, getattr(place, name)) for place, name, _ in self.patches]
        for place, name, value in self.patches:
            setattr(place, name, value)
        try:
            yield
        finally:
            for place, name, value in before:
                setattr(place, name, value)

    @property
    def unbroken(self) -> Bounds:
        """The same bounds with nothing left out."""
        return replace(
            self.bounds,
            forced=frozenset(),
            live_lists=True,
            live_claims=True,
            notes=True,
            yield_reason=False,
        )

    def search(self) -> Found:
        with self.applied():
            return Search(Model(self.dialect, self.bounds)).run()
