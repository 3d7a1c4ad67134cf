"""``claimctl install``: applies the manifests and waits until the controller runs."""

from __future__ import annotations

import asyncio

import typer

from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed
from claimctl.cli.progress import progress
from claimctl.cli.session import Session, in_session
from claimctl.commands.install.apply import Applied, Installer
from claimctl.commands.install.components import Choice, chosen
from claimctl.wire.base import Object

ANSWER_SECONDS = 60
"""How long all requests together may take, without the time of --wait."""


def install(access: Access, choice: Choice, *, seconds: float, dry_run: bool) -> None:
    """Apply the manifests, and wait for the controller for so long; 0: not at all."""
    try:
        in_session(access, _carry_out, None, chosen(choice), seconds, dry_run=dry_run)
    except TimeoutError as error:
        raise CommandFailed(f"the server did not answer within {ANSWER_SECONDS} s") from error


async def _carry_out(
    session: Session, documents: list[Object], seconds: float, *, dry_run: bool
) -> None:
    suffix = " (dry run)" if dry_run else ""

    def tell(applied: Applied) -> None:
        """Print a result as kubectl does."""
        typer.echo(f"{applied.name} {applied.outcome}{suffix}")

    installer = Installer(session.transport, session.clock, tell)
    async with asyncio.timeout(ANSWER_SECONDS):
        await installer.check(documents)
        await installer.apply(documents, dry_run=dry_run)
    if seconds:
        with progress("waiting until the controller is available"):
            async with asyncio.timeout(seconds + ANSWER_SECONDS):
                await installer.wait(documents, seconds)
        typer.echo("claimctl is installed and runs", err=True)
