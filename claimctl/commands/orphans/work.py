"""``claimctl doctor orphans``: finds and frees claims that nothing else will free."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from claimctl.cli.documents import Document, ReasonText, by_names
from claimctl.cli.errors import ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import Table, columns, render
from claimctl.cli.printer import say
from claimctl.cli.process import who_am_i
from claimctl.cli.progress import progress
from claimctl.cli.session import Session
from claimctl.cli.successor import Successor
from claimctl.cli.timing import WatchWaits
from claimctl.commands.orphans.reclaim import Candidate, Outcome, Reclaim
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Duty, Settings
from claimctl.telemetry.logs import Level, configure
from claimctl.text import listed
from claimctl.wire.claims import Reference


async def run(
    session: Session, waits: WatchWaits, output: Output, *, write: bool, believing: bool
) -> int:
    """Find the orphans, free them if ``write``, and print the outcome of each claim."""
    configure(level=Level.ERROR)
    client, clock, namespace = session.client, session.clock, session.namespace
    settings = Settings.checked(
        identity=f"orphans_{who_am_i()}",
        duty=Duty.RETIRE,
        namespaces=frozenset(filter(None, (namespace,))),
        **waits.seconds,
    )
    with progress("looking for orphans") as line:
        manager = partial(Manager, transport=session.transport, clock=clock)
        successor = Successor(client, clock, settings, manager, line.say)
        grace = waits.grace_seconds
        freeing = Reclaim(client, clock, namespace, successor, line.say, grace, believing)
        candidates = await (freeing.run if write else freeing.preview)()
    shown = document(candidates, dry_run=not write)
    render(output, table(candidates, session.namespace), shown)
    _conclude(candidates, write=write)
    return exit_code(candidates)


def exit_code(candidates: Sequence[Candidate]) -> int:
    outcomes = {candidate.outcome for candidate in candidates}
    if Outcome.FAILED in outcomes:
        return ExitCode.FAILED
    return ExitCode.FINDINGS if outcomes & {Outcome.LEFT, Outcome.WOULD_FREE} else ExitCode.OK


def table(candidates: Sequence[Candidate], namespace: str) -> Table:
    return Table(
        columns=columns(
            *("NAMESPACE", "CLAIM", "REASON", "DEVICES", "OUTCOME", "WHAT", "REFERENCES", "UID"),
            text=("WHAT",),
            drop=("DEVICES", "WHAT", "REASON"),
            wide=("REFERENCES", "UID"),
        ),
        rows=tuple(
            (
                candidate.key.namespace,
                candidate.key.name,
                candidate.orphan.cause,
                listed(f"{it.pool}/{it.device}" for it in candidate.claim.devices),
                str(candidate.outcome),
                candidate.note or candidate.orphan.describe(),
                str(len(candidate.claim.status.reserved_for)),
                candidate.claim.metadata.uid,
            )
            for candidate in candidates
        ),
        names=tuple(
            resource_name(CLAIM, candidate.key.name) for candidate in _freed_candidates(candidates)
        ),
        empty=f"No orphans found{f' in namespace {namespace}' * bool(namespace)}.",
    )


def _freed_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [it for it in candidates if it.outcome in (Outcome.FREED, Outcome.WOULD_FREE)]


class OrphanClaim(ReasonText, frozen=True):
    namespace: str
    name: str
    uid: str
    devices: tuple[str, ...]
    reserved_for: tuple[Reference, ...]
    outcome: str
    blockers: tuple[ReasonText, ...]
    error: str


class OrphanList(Document, frozen=True):
    """``claimctl doctor orphans``"""

    dry_run: bool
    items: tuple[OrphanClaim, ...]


def document(candidates: Sequence[Candidate], *, dry_run: bool) -> OrphanList:
    return OrphanList(
        dry_run=dry_run,
        items=tuple(
            OrphanClaim(
                namespace=candidate.key.namespace,
                name=candidate.key.name,
                uid=candidate.claim.metadata.uid,
                reason=candidate.orphan.cause,
                message=candidate.orphan.message,
                devices=tuple(f"{it.pool}/{it.device}" for it in candidate.claim.devices),
                reserved_for=candidate.claim.status.reserved_for,
                outcome=str(candidate.outcome),
                blockers=by_names(candidate.orphan.blockers, tuple[ReasonText, ...]),
                error=candidate.note,
            )
            for candidate in candidates
        ),
    )


def _conclude(candidates: Sequence[Candidate], *, write: bool) -> None:
    """Print one line on stderr: the result, and what to do next."""
    if not candidates:
        return
    acted = f"{len(_freed_candidates(candidates))} of {len(candidates)} claims"
    if write:
        say(f"{acted} freed")
    elif _freed_candidates(candidates):
        say(f"{acted} would be freed, nothing was written: --yes frees them")
    else:
        say(f"{acted} can be freed: see WHAT")
