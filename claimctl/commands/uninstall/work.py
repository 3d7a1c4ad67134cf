"""Runs the commands of ``claimctl uninstall``, and prints what is left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import typer

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.objects import resource_name
from claimctl.cli.output import Table, columns, render
from claimctl.cli.printer import say
from claimctl.cli.process import who_am_i
from claimctl.cli.progress import progress
from claimctl.cli.session import Session, connection_of, if_interrupted, in_session
from claimctl.cli.timing import WATCH_WAITS, WatchWaits
from claimctl.commands.install.components import NAMESPACE, every_document
from claimctl.commands.install.objects import Objects, check_helm, name_of
from claimctl.commands.uninstall.model import UninstallReport
from claimctl.commands.uninstall.run import Uninstall, UninstallResult, UninstallWanted
from claimctl.commands.uninstall.stopping import stop_controller, stop_rescheduler
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Duty, Settings
from claimctl.downgrade.plans import NoSuchNamespace
from claimctl.kube.errors import Forbidden
from claimctl.telemetry.logs import Level, configure
from claimctl.text import counted, duration, listed
from claimctl.wire.base import Object


@dataclass(frozen=True, slots=True)
class Mode:
    """What the command does.

    Attributes:
        verify: only look, and say whether claimctl can be deleted.
        dry_run: only look, and say what would be done.
        stop: stop the controller when nothing is left.
        delete: delete claimctl when nothing is left.
    """

    verify: bool = False
    dry_run: bool = False
    stop: bool = False
    delete: bool = False


def wanted_by(
    namespaces: Sequence[str],
    lease_namespace: str = "claimctl-system",
    waits: WatchWaits = WATCH_WAITS,
    timeout: float = 900.0,
) -> UninstallWanted:
    """What the flags ask for. Times are in seconds."""
    scope = tuple(dict.fromkeys(namespaces))
    return UninstallWanted(
        settings=Settings.checked(
            identity=f"uninstall_{who_am_i()}",
            lease_namespace=lease_namespace,
            duty=Duty.RETIRE,
            namespaces=frozenset(scope),
            **waits.seconds,
        ),
        namespaces=scope,
        grace=waits.grace_seconds,
        timeout=timeout,
    )


def ask(access: Access, wanted: UninstallWanted) -> None:
    """Ask on the terminal whether to take claimctl away, outside the event loop, where Ctrl-C ends
    the question at once.

    Raises:
        UsageError: there is no terminal to ask on.
        typer.Abort: the answer is no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        text = "--yes is needed where nobody can be asked; --dry-run shows what would be done"
        raise UsageError(f"uninstall run: {text}")

    async def look(session: Session) -> tuple[int, int]:
        objects = Objects(session.transport, session.clock)
        due = await present(objects, wanted.settings.lease_namespace)
        return len((await carry_out(session, wanted, write=False)).left), len(due)

    changed, deleted = in_session(access, look)
    typer.confirm(
        f"This changes or deletes {counted(changed, 'object')} of all namespaces, and then deletes "
        f"{counted(deleted, 'object')} of claimctl itself, at {connection_of(access).server}. "
        "Running pods go on. Uninstall claimctl?",
        abort=True,
        err=True,
    )


def uninstall(access: Access, wanted: UninstallWanted, output: Output, mode: Mode) -> int:
    """Do what the mode says, print what is left, and return the exit code."""

    async def work(session: Session) -> int:
        objects = Objects(session.transport, session.clock)
        namespace = wanted.settings.lease_namespace
        due = await present(objects, namespace) if mode.delete else []
        result = await carry_out(session, wanted, write=not (mode.verify or mode.dry_run))
        if mode.stop and not result.left:
            result = await _stop(session, wanted, result)
        _show(result, wanted, output, mode)
        if mode.delete and mode.dry_run:
            for document in due:
                say(f"{name_of(document)} would be deleted")
        elif mode.delete and not result.left:
            for document in due:
                await objects.delete(document)
                say(f"{name_of(document)} deleted")
            say("claimctl is uninstalled")
        elif mode.verify and not (result.left or wanted.namespaces):
            with suppress(Forbidden):
                if names := [name_of(item) for item in await present(objects, namespace)]:
                    say(f"installed: {listed(names, 3)}; `claimctl uninstall run` deletes them")
        return exit_code(result)

    return in_session(access, work)


async def carry_out(session: Session, wanted: UninstallWanted, *, write: bool) -> UninstallResult:
    """Take claimctl out, or only look; UsageError if a namespace of the scope does not exist."""
    # A controller inside the command warns when the watch of a deleted CRD ends.
    configure(level=Level.ERROR)
    stays = "; what is done stays, and another run continues" if write else ""
    try:
        with (
            if_interrupted(f"interrupted{stays}"),
            progress("taking claimctl out of the cluster") as line,
        ):
            manager = partial(Manager, transport=session.transport, clock=session.clock)
            objects = Objects(session.transport, session.clock)
            run = Uninstall(session.client, session.clock, wanted, objects, manager, line.say)
            return await (run.run() if write else run.look())
    except NoSuchNamespace as missing:
        raise UsageError(f"--namespace: the cluster has no namespace {missing}") from None


async def _stop(
    session: Session, wanted: UninstallWanted, before: UninstallResult
) -> UninstallResult:
    """Stop claimctl's own pods, and take out what users have reserved in the meantime."""
    namespace = wanted.settings.lease_namespace
    if await stop_rescheduler(session.client, session.clock, namespace):
        say("claimctl reschedule is stopped")
    stopped = await stop_controller(session.client, session.clock, namespace)
    say("the controller is stopped" if stopped else "no controller is installed")
    after = await carry_out(session, wanted, write=True)
    after.removed[:0] = before.removed
    return after


def exit_code(result: UninstallResult) -> int:
    return ExitCode.FINDINGS if result.left else ExitCode.OK


def _show(result: UninstallResult, wanted: UninstallWanted, output: Output, mode: Mode) -> None:
    state = "WouldRemove" if mode.dry_run else "Left"
    render(output, table(result, state), document(result, wanted, dry_run=mode.dry_run))
    for note in result.notes:
        say(f"note: {note}")
    say(conclusion(result, wanted.namespaces, verify=mode.verify, dry_run=mode.dry_run))


def table(result: UninstallResult, state: str) -> Table:
    titles = ("NAMESPACE", "KIND", "NAME", "STATE", "REASON", "TIME LEFT", "MESSAGE")
    return Table(
        columns=columns(*titles, text=("MESSAGE",), drop=("STATE",)),
        rows=tuple(
            (
                leftover.namespace,
                leftover.kind,
                leftover.name,
                state,
                leftover.reason,
                duration(leftover.after) if leftover.after else "",
                leftover.message,
            )
            for leftover in result.left
        ),
        names=tuple(resource_name(leftover.kind, leftover.name) for leftover in result.left),
        empty="Nothing of claimctl is left that would block anything.",
    )


def document(result: UninstallResult, wanted: UninstallWanted, *, dry_run: bool) -> UninstallReport:
    return UninstallReport(
        dry_run=dry_run,
        namespaces=wanted.namespaces,
        clean=not result.left,
        removed=tuple(result.removed),
        left=result.left,
        notes=result.notes,
    )


def conclusion(
    result: UninstallResult, namespaces: tuple[str, ...], *, verify: bool, dry_run: bool
) -> str:
    """One line: the result, and what to do next."""
    count = len(result.left)
    if not count and namespaces:
        return f"nothing of claimctl is left in {', '.join(namespaces)}"
    if not count:
        return "claimctl can be deleted"
    if dry_run:
        return f"{counted(count, 'object')} would be changed or deleted; nothing was written"
    advice = "run `claimctl uninstall prepare`" if verify else "do what MESSAGE says, and run again"
    where = counted(count, "object")
    return f"claimctl cannot be deleted yet: its traces are left in {where}; {advice}"


async def present(objects: Objects, namespace: str) -> list[Object]:
    """claimctl's objects that are there, in the order in which they go. CommandFailed if a Helm
    release owns one of them. ``namespace`` is that of the controller."""
    there = []
    for document in in_order_of_deletion(every_document(namespace)):
        existing = await objects.find(document)
        if existing is not None:
            check_helm(existing, "uninstall")
            there.append(document)
    return there


def in_order_of_deletion(documents: Sequence[Object]) -> list[Object]:
    """Each object once, the last component first, so that the CRDs go last. A namespace that others
    may use, too, is left out."""
    once = {(last["apiVersion"], name_of(last)): last for last in reversed(documents)}
    return [
        document
        for document in once.values()
        if document["kind"] != "Namespace" or document["metadata"]["name"] == NAMESPACE
    ]
