"""The flags of every command that carries a plan out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from claimctl.cli.durations import duration_option
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption

_PARALLELISM = typer.Option(
    "--parallelism",
    metavar="N",
    min=1,
    max=64,
    help="Claims that are written at a time. [default: 8]",
)
_TIMEOUT = duration_option(
    "--timeout",
    "Time after which the command ends with exit code 1. The plan stays, a controller continues "
    "it, and so does the next run. [default: no limit]",
    least=1,
)


@dataclass(frozen=True, slots=True)
class PlanFlags:
    parallelism: Annotated[int | None, _PARALLELISM] = None
    timeout: Annotated[float | None, _TIMEOUT] = None
    dry_run: DryRunOption = False
    output: OutputOption = Output.TABLE


PLAN_FLAGS = PlanFlags()
