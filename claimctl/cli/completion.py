"""``claimctl completion``: the scripts that let a shell complete claimctl's commands.

A shell then also completes names from the cluster and the kubeconfig."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from claimctl.cli import typer_internals
from claimctl.cli.printer import print_whole


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


VARIABLE = "_CLAIMCTL_COMPLETE"
"""The environment variable that the scripts set when they ask claimctl for completions."""


EXAMPLES = (
    "source <(claimctl completion bash)",
    "claimctl completion fish > ~/.config/fish/completions/claimctl.fish",
)


def command(
    shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")],
) -> int:
    """Print a completion script to source, as in ``source <(claimctl completion bash)``."""
    print_whole(typer_internals.script_for(shell.value, "claimctl", VARIABLE))
    return 0


METAVARS = frozenset({"CLAIM", "[CLAIM]...", "OBJECT", "[OBJECT]..."})
NAMES = frozenset({"namespace", "namespaces", "context", "cluster", "user"})
"""What is completed: by the metavar of a parameter, or else by its name. Each has a function in
``cluster_names.COMPLETIONS``."""


def complete_names(command: Any) -> None:
    """Let a command's arguments and options complete names. Hidden flags are offered, too."""
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            parameter.hidden = False
        kind = parameter.metavar if parameter.metavar in METAVARS else parameter.name
        if kind in METAVARS | NAMES:
            typer_internals.complete_by(parameter, partial(_names, kind))


def _names(kind: str, context: Any, incomplete: str) -> list[str]:
    from claimctl.cli.cluster_names import COMPLETIONS

    return COMPLETIONS[kind](context, incomplete)
