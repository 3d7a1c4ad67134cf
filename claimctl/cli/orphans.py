"""``claimctl release --orphans``: what is left over, what became of it, and how that is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from claimctl.cli.options import Output

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.orphans.model import WatchTimes
    from claimctl.orphans.reclaim import Candidate
    from claimctl.reservation.decision import Blocker


@dataclass(frozen=True, slots=True)
class Wanted:
    """``namespace``: '' means all. Without ``write`` nothing is written. Durations in seconds,
    None for what is usual."""

    namespace: str
    write: bool
    grace_seconds: float | None = None
    settle_seconds: float | None = None
    binding_seconds: float | None = None
    slow_binding_seconds: float | None = None

    def patience(self) -> WatchTimes:
        from claimctl.orphans.model import WatchTimes

        asked = {
            "grace_seconds": self.grace_seconds,
            "settle_seconds": self.settle_seconds,
            "binding_seconds": self.binding_seconds,
            "slow_binding_seconds": self.slow_binding_seconds,
        }
        return WatchTimes(**{name: value for name, value in asked.items() if value is not None})


async def run(session: Session, wanted: Wanted, output: Output) -> int:
    """Look, free what may be freed if that is wanted, and print what became of each claim."""
    from claimctl.cli.output import render
    from claimctl.orphans.reclaim import Reclaim

    patience = wanted.patience()
    freeing = Reclaim(session.client, session.clock, wanted.namespace, patience, _progress)
    found = await (freeing.run if wanted.write else freeing.preview)()
    render(output, table(found, wanted), document(found, wanted))
    _conclude(found, wanted)
    return exit_code(found)


def _progress(line: str) -> None:
    typer.echo(line, err=True)


def exit_code(found: Sequence[Candidate]) -> int:
    from claimctl.cli.errors import ExitCode
    from claimctl.orphans.reclaim import Outcome

    outcomes = {each.outcome for each in found}
    if Outcome.FAILED in outcomes:
        return ExitCode.FAILED
    return ExitCode.FINDINGS if outcomes & {Outcome.LEFT, Outcome.WOULD_FREE} else ExitCode.OK


def table(found: Sequence[Candidate], wanted: Wanted) -> Table:
    from claimctl.cli.output import Column, Table

    columns = ("NAMESPACE", "CLAIM", "REASON", "OUTCOME", "WHAT")
    return Table(
        columns=(*map(Column, columns), Column("REFERENCES", wide=True), Column("UID", wide=True)),
        rows=tuple(
            (
                each.key.namespace,
                each.key.name,
                each.leftover.cause,
                str(each.outcome),
                _what(each),
                str(len(each.claim.status.reserved_for)),
                each.claim.metadata.uid,
            )
            for each in found
        ),
        names=tuple(f"resourceclaim.resource.k8s.io/{each.key.name}" for each in _acted_on(found)),
        empty=f"No claims left over{_where(wanted)}.",
    )


def _acted_on(found: Sequence[Candidate]) -> list[Candidate]:
    from claimctl.orphans.reclaim import Outcome

    return [each for each in found if each.outcome in (Outcome.FREED, Outcome.WOULD_FREE)]


def _where(wanted: Wanted) -> str:
    return f" in namespace {wanted.namespace}" if wanted.namespace else ""


def _what(candidate: Candidate) -> str:
    """In one line: why it is a leftover, and what stands against freeing it, or what failed."""
    from claimctl.inspect.cluster_checks import said

    return candidate.note or said(candidate.leftover)


def document(found: Sequence[Candidate], wanted: Wanted) -> dict[str, Any]:
    """The stable form for programs."""
    from claimctl.wire.base import to_plain

    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "LeftoverList",
        "dryRun": not wanted.write,
        "items": [
            {
                "namespace": each.key.namespace,
                "name": each.key.name,
                "uid": each.claim.metadata.uid,
                "reason": str(each.leftover.cause),
                "message": each.leftover.message,
                "reservedFor": [to_plain(one) for one in each.claim.status.reserved_for],
                "outcome": str(each.outcome),
                "against": [_blocker(one) for one in each.leftover.against],
                "error": each.note,
            }
            for each in found
        ],
    }


def _blocker(blocker: Blocker) -> dict[str, str]:
    return {"reason": str(blocker.reason), "message": blocker.message}


def _conclude(found: Sequence[Candidate], wanted: Wanted) -> None:
    """One line on stderr: what that means, and what comes next."""
    if not found:
        return
    acted = f"{len(_acted_on(found))} of {len(found)} claims"
    if wanted.write:
        _progress(f"{acted} freed")
    elif _acted_on(found):
        patience = wanted.patience()
        watched = patience.settle_seconds + patience.grace_seconds
        advice = f"--yes frees them, after watching them for {watched:.0f} s or longer"
        _progress(f"{acted} would be freed, nothing was written: {advice}")
    else:
        _progress(f"{acted} can be freed: see WHAT")
