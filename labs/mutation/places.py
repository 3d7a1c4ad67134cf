"""Finds the places of a module that can be mutated, and compiles a switch into each of them.

There are three mutations: a comparison is flipped, a condition is negated, ``and`` stands for
``or`` and the other way round. ``a < b`` becomes ``(a >= b) if mutated(7) else (a < b)``. So one
import serves all mutations, and a process switches one of them on.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar

from labs.mutation import switch

FLIPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
}
_SWITCH = "_mutated"
_Scope = TypeVar("_Scope", ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Conditional = TypeVar("_Conditional", ast.If, ast.While, ast.IfExp)


@dataclass(frozen=True, slots=True)
class Place:
    """One mutation of one expression. All but ``line`` stay the same when lines move.

    Attributes:
        module: the name of the module.
        function: the function with the classes and functions around it, joined by dots.
        source: the expression.
        change: what the mutation makes of it.
        occurrence: the number of equal mutations before this one in the function.
        line: the line of the expression, from 1.
    """

    module: str
    function: str
    source: str
    change: str
    occurrence: int
    line: int

    @property
    def key(self) -> str:
        parts = (self.module, self.function, self.source, self.change, str(self.occurrence))
        return " | ".join(parts)

    def __str__(self) -> str:
        file = self.module.replace(".", "/") + ".py"
        return f"{file}:{self.line} {self.function}: {self.source} -> {self.change}"


class MutationPlaces:
    """All places of the modules that were given to :meth:`planted`, numbered from 0."""

    def __init__(self) -> None:
        self.found: list[Place] = []

    def planted(self, module: str, tree: ast.Module) -> ast.Module:
        """Find the module's places; change the tree so that each asks its switch."""
        changed = _Planter(module, self.found).visit(tree)
        asks = ast.ImportFrom(switch.__name__, [ast.alias("mutated", _SWITCH)], 0)
        changed.body.insert(_after_future_imports(changed), asks)
        assert isinstance(changed, ast.Module)
        return changed


class _Planter(ast.NodeTransformer):
    def __init__(self, module: str, places: list[Place]) -> None:
        self._module = module
        self._found = places
        self._scopes: list[str] = []
        self._functions = 0
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._scope(node)

    def _function(self, node: _Scope) -> _Scope:
        self._functions += 1
        scope = self._scope(node)
        self._functions -= 1
        return scope

    def _scope(self, node: _Scope) -> _Scope:
        self._scopes.append(node.name)
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """An assertion tells a type; it decides nothing."""
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        original = deepcopy(node)
        self.generic_visit(node)
        return self._switched(node, original, _flipped(original))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        original, other = deepcopy(node), deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.generic_visit(node)
        return self._switched(node, original, [other])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        original = deepcopy(node)
        self.generic_visit(node)
        without = [original.operand] if isinstance(node.op, ast.Not) else []
        return self._switched(node, original, without)

    def visit_If(self, node: ast.If) -> ast.If:
        return self._conditional(node)

    def visit_While(self, node: ast.While) -> ast.While:
        return self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        return self._conditional(node)

    def _conditional(self, node: _Conditional) -> _Conditional:
        original = deepcopy(node.test)
        self.generic_visit(node)
        node.test = self._negated(node.test, original)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        originals = deepcopy(node.ifs)
        self.generic_visit(node)
        pairs = zip(node.ifs, originals, strict=True)
        node.ifs = [self._negated(test, original) for test, original in pairs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        original = deepcopy(node.guard)
        self.generic_visit(node)
        if node.guard is not None and original is not None:
            node.guard = self._negated(node.guard, original)
        return node

    def _negated(self, test: ast.expr, original: ast.expr) -> ast.expr:
        """The test with a switch that negates it, unless another mutation does so already."""
        if isinstance(original, ast.Constant):
            return test  # while True
        alike = isinstance(original, ast.Compare) and len(original.ops) == 1
        if alike or (isinstance(original, ast.UnaryOp) and isinstance(original.op, ast.Not)):
            return test
        return self._switched(test, original, [ast.UnaryOp(ast.Not(), deepcopy(original))])

    def _switched(
        self, node: ast.expr, original: ast.expr, changes: list[ast.expr] | Iterator[ast.expr]
    ) -> ast.expr:
        if not self._functions:
            return node
        for changed in changes:
            test = ast.Call(
                ast.Name(_SWITCH, ast.Load()), [ast.Constant(self._number(original, changed))], []
            )
            node = ast.copy_location(ast.IfExp(test, changed, node), original)
        return node

    def _number(self, original: ast.expr, changed: ast.expr) -> int:
        function, source = ".".join(self._scopes), ast.unparse(original)
        change = ast.unparse(changed)
        occurrence = self._seen[function, source, change]
        self._seen[function, source, change] += 1
        self._found.append(
            Place(self._module, function, source, change, occurrence, original.lineno)
        )
        return len(self._found) - 1


def _flipped(node: ast.Compare) -> Iterator[ast.expr]:
    for at, operator in enumerate(node.ops):
        for other in FLIPS[type(operator)]:
            changed = deepcopy(node)
            changed.ops[at] = other()
            yield changed


def _after_future_imports(tree: ast.Module) -> int:
    """The index of the first statement that is neither the docstring nor a future import."""
    for at, statement in enumerate(tree.body):
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (text or future):
            return at
    return len(tree.body)
