"""What claimctl needs of typer's private modules. No other module uses a private name of typer.

typer has no public way to complete without its two flags ``--install-completion`` and
``--show-completion``, and carries a copy of click, so click's own ``shell_completion`` does not
serve. Nor has it one to read a text without pydantic. Look here after an update to another minor
version of typer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import EnumType
from functools import partial
from typing import Any, get_args, get_origin

import typer
import typer.core
from typer._coercion import RuntimeParam
from typer._param_types import coerce_cli_choice


def answer_shells() -> None:
    """Let the command line answer what a shell asks it, as ``add_completion`` does."""
    from typer._completion_classes import completion_init

    completion_init()


def script_for(shell: str, program: str, variable: str) -> str:
    """The script with which a shell asks a program for completions.

    Args:
        variable: the environment variable that the script sets when it asks.
    """
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name=program, complete_var=variable, shell=shell)


def suggestions(
    command: Any, program: str, variable: str, before: Sequence[str], incomplete: str
) -> list[str]:
    """What the incomplete word may become after the words before it."""
    from typer._completion_classes import BashComplete

    complete = BashComplete(command, {}, program, variable)
    return [str(item.value) for item in complete.get_completions(list(before), incomplete)]


def complete_by(parameter: Any, names: Callable[[Any, str], list[str]]) -> None:
    """Let a parameter of a command offer names. ``names`` gets the context and the incomplete
    word."""
    from typer._click.shell_completion import CompletionItem

    def offer(context: Any, _: Any, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names(context, incomplete)]

    parameter._custom_shell_complete = offer


class ReadsPlainly:
    """A command or a group, without pydantic for parameters that are texts, switches, words of an
    enum, or have a parser.

    Their values are what typer reads. But typer imports pydantic for each, and that takes as long
    as all of claimctl.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # the command's own
        for parameter in params:
            kind = parameter.type_descriptor
            read = _reader(kind.annotation, kind.parameter_info)
            if read is not None:
                parameter._runtime_param = _Read(kind.parameter_info, kind.annotation, read)
        return params


class PlainCommand(ReadsPlainly, typer.core.TyperCommand):
    """A command that imports no pydantic, unless it has a number or a path."""


def _reader(annotation: Any, info: Any) -> Callable[[Any], Any] | None:
    """How to read a value; None for what typer has to read, such as numbers and paths."""
    if get_origin(annotation) is list:
        read = _reader(get_args(annotation)[0], info)
        return None if read is None else partial(_each, read)
    if info.parser is not None:
        return info.parser  # type: ignore[no-any-return]
    if isinstance(annotation, EnumType):
        sensitive = info.case_sensitive
        return partial(coerce_cli_choice, choices=tuple(annotation), case_sensitive=sensitive)
    return annotation if annotation in (str, bool) else None


def _each(read: Callable[[Any], Any], values: Any) -> list[Any]:
    return [read(value) for value in values]


@dataclass(frozen=True)
class _Read(RuntimeParam):
    read: Callable[[Any], Any]

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self.read(value)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=param) from error
