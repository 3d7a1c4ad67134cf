"""``claimctl orphans``: finds allocated claims that no component will release, and frees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import (
    AllNamespacesOption,
    DryRunOption,
    NamespaceOption,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.commands.orphans.model import WatchTimes
    from claimctl.commands.orphans.reclaim import Candidate
    from claimctl.reservation.facts.decision import Blocker


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of one run. Namespace "" means all namespaces. Without ``write`` nothing is
    written."""

    namespace: str
    write: bool
    times: WatchTimes


def watch_times(**asked: float | None) -> WatchTimes:
    """Durations in seconds; None means the default."""
    from claimctl.commands.orphans.model import WatchTimes

    return WatchTimes(**{name: value for name, value in asked.items() if value is not None})


def _seconds(flag: str, help_: str) -> Any:
    return typer.Option(flag, metavar="N", min=0, max=3600, help=help_)


EXAMPLES = (
    "claimctl orphans -A                     # list them; nothing is written",
    "claimctl orphans -n ml --yes            # free them",
    "claimctl orphans -A -o name",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    yes: Annotated[
        bool, typer.Option("--yes", help="Free the orphans. [default: only list them]")
    ] = False,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    grace_seconds: Annotated[
        int | None,
        typer.Option(
            "--force-deleted-pod-grace-seconds",
            metavar="N",
            min=0,
            max=86400,
            help="Seconds for which a vanished pod may still be running. Claims are watched for as "
            "long first. With fewer seconds such a pod may lose its device. [default: 300]",
        ),
    ] = None,
    settle_seconds: Annotated[
        float | None,
        _seconds(
            "--settle-seconds",
            "Seconds to wait after a claim's last change; must exceed the lag of schedulers' "
            "caches. [default: 5]",
        ),
    ] = None,
    binding_seconds: Annotated[
        float | None,
        _seconds(
            "--binding-seconds",
            "Seconds within which a scheduler binds a pod after it has read the claim. "
            "[default: 60]",
        ),
    ] = None,
    slow_binding_seconds: Annotated[
        float | None,
        _seconds(
            "--slow-binding-seconds",
            "The same, in seconds, for pods with volumes, of gangs and of other schedulers. "
            "[default: 600]",
        ),
    ] = None,
    access: Access = DEFAULT,
) -> int:
    """List the allocated claims that no component will release; free them with --yes.

    No ClaimReservation names such a claim and no pod uses it. Exit code 3: some orphans are left.
    """
    from claimctl.cli.errors import UsageError
    from claimctl.cli.session import in_session

    if namespace is not None and all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")

    async def work(session: Session) -> int:
        wanted = Wanted(
            namespace="" if all_namespaces else namespace or session.namespace,
            write=yes and not dry_run,
            times=watch_times(
                grace_seconds=grace_seconds,
                settle_seconds=settle_seconds,
                binding_seconds=binding_seconds,
                slow_binding_seconds=slow_binding_seconds,
            ),
        )
        return await run(session, wanted, output)

    return in_session(access, work)


async def run(session: Session, wanted: Wanted, output: Output) -> int:
    """Find the orphans, free them if ``wanted.write``, and print the outcome of each claim."""
    from claimctl.cli.output import render
    from claimctl.cli.progress import progress
    from claimctl.commands.orphans.reclaim import Reclaim

    with progress("looking for orphans") as line:
        freeing = Reclaim(session.client, session.clock, wanted.namespace, wanted.times, line.say)
        found = await (freeing.run if wanted.write else freeing.preview)()
    render(output, table(found, wanted), document(found, wanted))
    _conclude(found, wanted)
    return exit_code(found)


def exit_code(found: Sequence[Candidate]) -> int:
    from claimctl.cli.errors import ExitCode
    from claimctl.commands.orphans.reclaim import Outcome

    outcomes = {each.outcome for each in found}
    if Outcome.FAILED in outcomes:
        return ExitCode.FAILED
    return ExitCode.FINDINGS if outcomes & {Outcome.LEFT, Outcome.WOULD_FREE} else ExitCode.OK


def table(found: Sequence[Candidate], wanted: Wanted) -> Table:
    from claimctl.cli.objects import CLAIM, resource_name
    from claimctl.cli.output import Table, columns

    return Table(
        columns=columns(
            *("NAMESPACE", "CLAIM", "REASON", "OUTCOME", "WHAT", "REFERENCES", "UID"),
            text=("WHAT",),
            drop=("WHAT", "REASON"),
            wide=("REFERENCES", "UID"),
        ),
        rows=tuple(
            (
                each.key.namespace,
                each.key.name,
                each.orphan.cause,
                str(each.outcome),
                _what(each),
                str(len(each.claim.status.reserved_for)),
                each.claim.metadata.uid,
            )
            for each in found
        ),
        names=tuple(resource_name(CLAIM, each.key.name) for each in _acted_on(found)),
        empty=f"No orphans found{_where(wanted)}.",
    )


def _acted_on(found: Sequence[Candidate]) -> list[Candidate]:
    from claimctl.commands.orphans.reclaim import Outcome

    return [each for each in found if each.outcome in (Outcome.FREED, Outcome.WOULD_FREE)]


def _where(wanted: Wanted) -> str:
    return f" in namespace {wanted.namespace}" if wanted.namespace else ""


def _what(candidate: Candidate) -> str:
    """One line: why the claim is an orphan, and what blocks freeing it, or what failed."""
    return candidate.note or candidate.orphan.describe()


def document(found: Sequence[Candidate], wanted: Wanted) -> dict[str, Any]:
    """The stable form for programs."""
    from claimctl.wire.base import to_plain

    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "OrphanList",
        "dryRun": not wanted.write,
        "items": [
            {
                "namespace": each.key.namespace,
                "name": each.key.name,
                "uid": each.claim.metadata.uid,
                "reason": str(each.orphan.cause),
                "message": each.orphan.message,
                "reservedFor": [to_plain(one) for one in each.claim.status.reserved_for],
                "outcome": str(each.outcome),
                "blockers": [_blocker(one) for one in each.orphan.blockers],
                "error": each.note,
            }
            for each in found
        ],
    }


def _blocker(blocker: Blocker) -> dict[str, str]:
    return {"reason": str(blocker.reason), "message": blocker.message}


def _conclude(found: Sequence[Candidate], wanted: Wanted) -> None:
    """Print one line on stderr: the result, and what to do next."""
    if not found:
        return
    acted = f"{len(_acted_on(found))} of {len(found)} claims"
    if wanted.write:
        typer.echo(f"{acted} freed", err=True)
    elif _acted_on(found):
        watched = wanted.times.settle_seconds + wanted.times.grace_seconds
        advice = f"--yes frees them, after watching them for {watched:.0f} s or longer"
        typer.echo(f"{acted} would be freed, nothing was written: {advice}", err=True)
    else:
        typer.echo(f"{acted} can be freed: see WHAT", err=True)
