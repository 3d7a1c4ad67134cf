"""What completion needs of typer's private modules. No other module uses a private name of typer.

typer has no public way to complete without its two flags ``--install-completion`` and
``--show-completion``, and carries a copy of click, so click's own ``shell_completion`` does not
serve. Look here after an update to another minor version of typer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


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
