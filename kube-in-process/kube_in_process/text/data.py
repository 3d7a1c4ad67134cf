"""Read tables from JSON files beside the modules that use them."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")


def table(package: str, name: str, shape: type[T]) -> T:
    """The content of a data file of ``package``, checked against ``shape``.

    Raises:
        msgspec.ValidationError: the content has another shape.
    """
    return msgspec.json.decode(files(package).joinpath(name).read_bytes(), type=shape)
