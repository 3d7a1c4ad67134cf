"""Dataclasses of flags: a command has one as a parameter, and its fields are options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_origin, get_type_hints


def flags_of(group: type) -> dict[str, Any]:
    """The annotation of each field that is a flag: its type and typer's option."""
    hints = get_type_hints(group, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}


def spread(function: Callable[..., int | None], **values: Any) -> Callable[..., int | None]:
    """The command with one parameter for each flag, as typer reads it.

    Args:
        values: by the name of a field: another default; the value of a field that is no flag.
    """
    only, parameters = inspect.Parameter.KEYWORD_ONLY, list[inspect.Parameter]()
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=only, annotation=hints[name]))
            continue
        defaults = {field.name: field.default for field in fields(groups[name])} | values
        parameters += (
            inspect.Parameter(flag, only, default=defaults[flag], annotation=hint)
            for flag, hint in flags_of(groups[name]).items()
        )

    def command(**given: Any) -> int | None:
        for name, group in groups.items():
            flags = {flag: given.pop(flag) for flag in flags_of(group)}
            others = {field.name for field in fields(group)} - flags.keys()
            given[name] = group(**flags, **{key: values[key] for key in others & values.keys()})
        return function(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {it.name: it.annotation for it in parameters} | {"return": int | None}
    command.__doc__, command.__module__ = function.__doc__, function.__module__
    return command
