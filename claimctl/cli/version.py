"""``claimctl version``."""

from __future__ import annotations

import platform

import typer

from claimctl import __version__
from claimctl.cli.options import DataOption
from claimctl.cli.output import print_document


def command(output: DataOption = None) -> int:
    """Print the versions of claimctl and of Python."""
    version = {"claimctl": __version__, "python": platform.python_version()}
    document = {"apiVersion": "cli.claimctl.io/v1alpha1", "kind": "Version", **version}
    if output:
        print_document(document, output)
    else:
        typer.echo(f"claimctl {__version__} (Python {platform.python_version()})")
    return 0
