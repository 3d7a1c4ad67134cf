"""The fields of the built-in kinds, with the names of the official Python client's models.

``models.json`` has them, as ``python -m judges schema-record`` reads them from that client. A model
is decoded when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

import msgspec

Fields = dict[str, tuple[str, str]]
"""JSON name -> (type as in the client's ``openapi_types``, description)."""


@dataclass(frozen=True, slots=True)
class Model:
    """One struct of the API."""

    description: str
    fields: Fields = field(default_factory=dict)
    required: tuple[str, ...] = ()


def model_names() -> frozenset[str]:
    return frozenset(_encoded())


def recorded_model(name: str) -> Model:
    """Raises KeyError if there is no such model."""
    return msgspec.json.decode(_encoded()[name], type=Model)


@lru_cache(maxsize=1)
def _encoded() -> dict[str, msgspec.Raw]:
    data = files(__package__).joinpath("models.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
