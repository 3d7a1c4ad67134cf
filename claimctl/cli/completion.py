"""``claimctl install completion``: the scripts that let a shell complete claimctl's commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


VARIABLE = "_CLAIMCTL_COMPLETE"
"""The environment variable that the scripts set when they ask claimctl for completions."""


EXAMPLES = (
    "source <(claimctl install completion bash)",
    "claimctl install completion fish > ~/.config/fish/completions/claimctl.fish",
)


def command(
    shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")],
) -> int:
    """Print a completion script to source, as in ``source <(claimctl install completion bash)``."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="claimctl", complete_var=VARIABLE, shell=shell.value)
    typer.echo(script)
    return 0
