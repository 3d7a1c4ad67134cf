"""The columns of each kind. Those of built-in kinds are in ``columns.json``.

In the file, ``cell`` names the function in ``cells`` (by default ``text``), and ``of`` is the path
of the field that the cell shows. The field's description describes the column if ``text`` is not
set.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from kube_in_process.http.tables.cells import CELLS
from kube_in_process.http.tables.columns import Cell, Column, Row, since
from kube_in_process.http.tables.network_cells import NETWORK_CELLS
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.text import jsonpath
from kube_in_process.text.data import table

_CELLS = {**CELLS, **NETWORK_CELLS}


def builtin_columns(kind: Kind, release: tuple[int, int]) -> Sequence[Column]:
    """The columns of a built-in kind in a release."""
    columns = _columns()
    if kind.resource == "serviceaccounts" and release >= (1, 36):
        return columns["plain"]
    # events of both groups are the same objects
    return columns.get("/".join(kind.storage), columns["default"])


@lru_cache(maxsize=1)
def _columns() -> dict[str, list[Column]]:
    """The columns of the file. Lists in ``kinds`` (by group/plural) name ``shared`` columns."""
    file = table(__package__, "columns.json", dict[str, dict[str, Any]])
    shared = {name: _column(written) for name, written in file["shared"].items()}
    return {
        kind: [shared[one] if isinstance(one, str) else _column(one) for one in columns]
        for kind, columns in file["kinds"].items()
    }


def _column(written: Object) -> Column:
    of = written.get("of", "")
    cell = _CELLS[written.get("cell", "text")]
    return Column(**{"text": f".{of}", **written, "cell": cell, "of": tuple(of.split("."))})


def custom_columns(definitions: Sequence[Object]) -> Sequence[Column]:
    """The name and additionalPrinterColumns of a definition; the age if it has none."""
    plain = _columns()["plain"]
    return [plain[0], *(_custom(one) for one in definitions)] if definitions else plain


def _custom(definition: Object) -> Column:
    path = definition["jsonPath"]
    text = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        definition["name"],
        _custom_cell(path, definition["type"]),
        text=definition.get("description") or text,
        priority=definition.get("priority", 0),
        type=definition["type"],
        format=definition.get("format", ""),
    )


def _custom_cell(path: str, kind: str) -> Cell:
    def cell(row: Row, column: Column) -> Any:
        values = jsonpath.find(path, row.obj)
        if not values or values[0] is None:
            return None
        if kind == "date":
            return since(str(values[0]), row.now)
        return str(values[0]) if kind == "string" else values[0]

    return cell
