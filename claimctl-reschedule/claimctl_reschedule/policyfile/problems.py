"""What is wrong in a policy file, or is not there in claimctl: one line each, with its path."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from claimctl_reschedule.policyfile.v1alpha2 import ARGS

Path = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TYPES = {
    "int_type": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "bool_type": "true or false is expected",
    "string_type": "a text is expected",
    "tuple_type": "a list is expected",
    "dict_type": "a mapping is expected",
    "model_type": "a mapping is expected",
}
_LIMITS = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}


class PolicyError(Exception):
    """The policy file cannot be used. ``problems`` has one line for each fault."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def path_text(path: Path) -> str:
    """A path as people write it: ``profiles[0].plugins.balance``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text


def at(path: Path, problem: str) -> str:
    return f"{path_text(path)}: {problem}"


def parse(model: type[M], given: Mapping[str, Any], path: Path, places: Mapping[str, str]) -> M:
    """Read the mapping that is at ``path`` of the file by a model. ``places`` says of fields that
    belong elsewhere where that is. Raises PolicyError if the mapping has another shape."""
    try:
        return model.model_validate_json(json.dumps(as_go_reads(model, given)))
    except ValidationError as error:
        faults = error.errors(include_url=False)
        lines = (
            at((*path, *fault["loc"]), _problem(fault, _siblings(model, fault["loc"]), places))
            for fault in faults
        )
        raise PolicyError(*lines) from None


def as_go_reads(model: type[BaseModel] | None, given: Any) -> Any:
    """A part of the file, without the fields that have nothing behind them.

    YAML has null there. Go reads it as if the field was absent, and so does a file whose list is
    commented out. Where null is a value of its own, it stays.
    """
    if isinstance(given, list):
        return [as_go_reads(model, item) for item in given]
    if model is None or not isinstance(given, dict):
        return given
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    spellings: Mapping[str, str] = getattr(model, "spellings", {})
    cleaned: dict[str, Any] = {}
    for key, value in given.items():
        name = key if spellings.get(key, key) in given else spellings.get(key, key)
        field = fields.get(name)
        below = next(_models(field.annotation), None) if field is not None else None
        absent = field is not None and type(None) not in getattr(field.annotation, "__args__", ())
        if value is not None or not absent:
            cleaned[name] = as_go_reads(below, value)
    return cleaned


def _problem(error: Any, siblings: Sequence[str], places: Mapping[str, str]) -> str:
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), siblings, places)
    if kind == "missing":
        return "is missing"
    if kind in _LIMITS:
        key, word = _LIMITS[kind]
        return f"{_value(given)} is not allowed: {word} {error['ctx'][key]:g} is expected"
    if kind in ("enum", "literal_error"):
        expected = error["ctx"]["expected"].replace("'", "")
        return f"{_value(given)} is not known: {expected} is expected"
    if kind in _TYPES:
        return f"{_value(given)}: {_TYPES[kind]}"
    text = error["msg"]
    return f"{_value(given)}: {text[0].lower()}{text[1:]}"


def _unknown(name: str, siblings: Sequence[str], places: Mapping[str, str]) -> str:
    if name in places:
        return places[name]
    near = difflib.get_close_matches(name, siblings, 1)
    near = near or [sibling for sibling in siblings if sibling.lower() == name.lower()]
    hint = f"is {near[0]} meant?" if near else f"known here: {', '.join(siblings)}"
    return f"unknown field: {hint}"


def _value(given: object) -> str:
    text = json.dumps(given, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _siblings(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The fields that are known in the mapping whose last part is at fault."""
    current = model
    for part in location[:-1]:
        # a part that is no field is an index, or a key such as a strategy's name
        fields = (known for known in current.model_fields.values() if known.alias == str(part))
        below = (inner for known in fields for inner in _models(known.annotation))
        current = next(below, current)
    return names(current)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation such as ``tuple[Model, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models(part)


def names(model: type[BaseModel]) -> list[str]:
    """The fields of a model, as a file names them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def raise_problems(problems: Iterable[str]) -> None:
    """Raise PolicyError if there are problems."""
    if lines := tuple(problems):
        raise PolicyError(*lines)


FLAG = "--skip-unsupported"


@dataclass(slots=True)
class Unsupported:
    """Collects the parts; ``skip`` says whether they are left out or refused."""

    skip: bool
    lines: dict[str, None] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)

    def plugin(self, path: Path, name: str) -> None:
        """Note a plugin once, wherever else the file names it."""
        if name in self.plugins:
            return
        self.plugins.add(name)
        near = difflib.get_close_matches(name, ARGS, 1, cutoff=0.85)
        hint = f": is {near[0]} meant?" if near else ""
        self.lines[at(path, f"claimctl has no plugin {name}{hint}")] = None

    def add(self, path: Path, why: str) -> None:
        self.lines[at(path, why)] = None

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(self.lines) if self.skip else ()

    def refuse(self) -> None:
        """Raise PolicyError unless the parts may be left out."""
        if self.lines and not self.skip:
            raise PolicyError(*(f"{line} ({FLAG} leaves it out)" for line in self.lines))
