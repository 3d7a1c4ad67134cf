"""Reads a policy file for a command."""

from __future__ import annotations

from pathlib import Path

import typer

from claimctl.cli.errors import UsageError
from claimctl.reschedule.policyfile.model import CheckedPolicy
from claimctl.reschedule.policyfile.problems import PolicyError
from claimctl.reschedule.policyfile.reading import read


def policy_of(path: Path, *, skip_unsupported: bool = False) -> CheckedPolicy:
    """The policy of a file. Each fault in it is one line on stderr.

    Raises:
        UsageError: the file cannot be read, or has faults; it tells the last one.
    """
    try:
        return read(path, skip_unsupported=skip_unsupported)
    except PolicyError as error:
        *first, last = (f"{path}: {line}" for line in error.problems)
        for line in first:
            typer.echo(f"error: {line}", err=True)
        raise UsageError(last) from None
