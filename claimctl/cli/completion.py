"""``claimctl completion``: the scripts that make a shell ask claimctl for what may come next."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


VARIABLE = "_CLAIMCTL_COMPLETE"
"""Set by the scripts when they call claimctl to ask for completions."""


def command(
    shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")],
) -> int:
    """Print a completion script, to be sourced: ``source <(claimctl completion bash)``."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="claimctl", complete_var=VARIABLE, shell=shell.value)
    typer.echo(script)
    return 0
