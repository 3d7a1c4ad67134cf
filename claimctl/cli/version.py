"""``claimctl version``."""

from __future__ import annotations

import platform

import typer

from claimctl import __version__
from claimctl.cli.options import Data, DataOption
from claimctl.cli.output import print_json, print_yaml


def command(output: DataOption = None) -> int:
    """Print the versions of claimctl and of Python."""
    version = {"claimctl": __version__, "python": platform.python_version()}
    document = {"apiVersion": "cli.claimctl.io/v1alpha1", "kind": "Version", **version}
    if output is Data.JSON:
        print_json(document)
    elif output is Data.YAML:
        print_yaml(document)
    else:
        typer.echo(f"claimctl {__version__} (Python {platform.python_version()})")
    return 0
