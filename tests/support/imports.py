"""Imports modules from a changed syntax tree. The files stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

Change = Callable[[str, ast.Module], ast.Module]
"""Makes the tree to compile from the name and the tree of a module."""


class ChangedImports(MetaPathFinder):
    """A finder for ``sys.meta_path``: the modules that ``wanted`` accepts are changed."""

    def __init__(self, wanted: Callable[[str], bool], change: Change) -> None:
        self._wanted = wanted
        self._change = change

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not self._wanted(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        loader = _Loader(fullname, spec.origin)
        loader.change = self._change
        return spec_from_file_location(
            fullname,
            spec.origin,
            loader=loader,
            submodule_search_locations=spec.submodule_search_locations,
        )


class _Loader(SourceFileLoader):
    change: Change

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed tree. A cache of bytecode is neither read nor written."""
        path = self.get_filename(fullname)
        tree = self.change(fullname, ast.parse(self.get_data(path), path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
