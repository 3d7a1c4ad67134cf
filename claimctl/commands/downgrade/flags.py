"""The flags that the commands of a downgrade and of an upgrade share."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.durations import duration_option

ParallelismOption = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        metavar="N",
        min=1,
        max=64,
        help="Claims that are written at a time. [default: 8]",
    ),
]
TimeoutOption = Annotated[
    float | None,
    duration_option(
        "--timeout",
        "Time after which the command ends with exit code 1. The plan stays, a controller "
        "continues it, and so does the next run. [default: no limit]",
        least=1,
    ),
]
