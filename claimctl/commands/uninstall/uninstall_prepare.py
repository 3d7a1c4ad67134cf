"""``claimctl uninstall-prepare``: leaves nothing of claimctl that would block anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import (
    DryRunOption,
    namespace_name,
    namespace_names,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.progress import Progress
    from claimctl.cli.session import Session
    from claimctl.commands.uninstall.model import Leftover
    from claimctl.commands.uninstall.run import Result, Uninstall, Wanted

NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="A namespace that claimctl is taken out of; may be repeated. [default: all "
        "namespaces]",
        callback=namespace_names,
    ),
]


def _seconds(flag: str, help_: str) -> Any:
    return typer.Option(flag, metavar="N", min=0, max=3600, help=help_)


EXAMPLES = (
    "claimctl uninstall-prepare --dry-run",
    "claimctl uninstall-prepare --verify",
    "claimctl uninstall-prepare -n ml --timeout 600",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Write nothing; exit with 0 if nothing of claimctl is left, else with 3. "
            "[default: off]",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop-controller",
            help="When nothing is left, scale the controller to 0, stop claimctl reschedule in the "
            "cluster, and look once more: from then on nothing makes another hold or taint. "
            "[default: off]",
        ),
    ] = False,
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=1,
            help="Seconds after which the command lists what is left and ends. Another run "
            "continues.",
        ),
    ] = 900,
    settle_seconds: Annotated[
        float, _seconds("--settle-seconds", "As for the controller, if this command replaces it.")
    ] = 5.0,
    binding_seconds: Annotated[float, _seconds("--binding-seconds", "The same.")] = 60.0,
    slow_binding_seconds: Annotated[float, _seconds("--slow-binding-seconds", "The same.")] = 600.0,
    grace_seconds: Annotated[
        float,
        typer.Option(
            "--force-deleted-pod-grace-seconds",
            metavar="N",
            min=0,
            max=86400,
            help="Seconds for which a vanished pod may still be running, for claims without a "
            "ClaimReservation.",
        ),
    ] = 300.0,
    lease_namespace: Annotated[
        str,
        typer.Option(
            "--lease-namespace",
            metavar="NAME",
            help="Namespace of the controller's Lease.",
            callback=namespace_name,
        ),
    ] = "claimctl-system",
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Remove everything of claimctl that would block anything, before it is uninstalled.

    Running pods go on. Exit code 3: something has to stay for now; another run continues.
    """
    from claimctl.cli.errors import UsageError
    from claimctl.cli.process import who_am_i
    from claimctl.cli.session import in_session
    from claimctl.commands.orphans.model import WatchTimes
    from claimctl.commands.uninstall.run import Wanted
    from claimctl.controller.settings import Settings

    if verify and dry_run:
        raise UsageError("--verify and --dry-run exclude each other: both write nothing")
    if stop and (verify or dry_run or namespaces):
        raise UsageError("--stop-controller: not with --verify, --dry-run or --namespace")
    scope = tuple(dict.fromkeys(namespaces or ()))
    times = {
        "settle_seconds": settle_seconds,
        "binding_seconds": binding_seconds,
        "slow_binding_seconds": slow_binding_seconds,
    }
    wanted = Wanted(
        settings=Settings.checked(
            identity=f"uninstall-prepare_{who_am_i()}",
            lease_namespace=lease_namespace,
            retires=True,
            namespaces=frozenset(scope),
            **times,
        ),
        namespaces=scope,
        times=WatchTimes(grace_seconds=grace_seconds, **times),
        timeout=float(timeout),
    )

    async def work(session: Session) -> Result:
        result = await _carried_out(session, wanted, write=not verify and not dry_run)
        return await _stopped(session, wanted, result) if stop and not result.left else result

    result = in_session(access, work)
    _show(result, wanted, output, verify=verify, dry_run=dry_run)
    return exit_code(result)


async def _carried_out(session: Session, wanted: Wanted, *, write: bool) -> Result:
    from claimctl.cli.errors import CommandFailed, UsageError
    from claimctl.cli.progress import progress
    from claimctl.commands.uninstall.scan import NoSuchNamespace
    from claimctl.commands.uninstall.successor import NoSuccessor
    from claimctl.telemetry.logs import Level, configure

    # A controller inside the command warns when the watch of a deleted CRD ends.
    configure(level=Level.ERROR)
    try:
        with progress("taking claimctl out of the cluster") as line:
            run = _run(session, wanted, line)
            return await (run.run() if write else run.look())
    except NoSuchNamespace as missing:
        raise UsageError(f"--namespace: the cluster has no namespace {missing}") from None
    except NoSuccessor as error:
        raise CommandFailed(str(error)) from error


async def _stopped(session: Session, wanted: Wanted, before: Result) -> Result:
    """Stop claimctl's own pods, and take out what users have reserved in the meantime."""
    from claimctl.cli.errors import CommandFailed
    from claimctl.commands.uninstall.stopping import StillRuns, stop_controller
    from claimctl.commands.uninstall.stopping_rescheduler import stop_rescheduler

    namespace = wanted.settings.lease_namespace
    try:
        if await stop_rescheduler(session.client, session.clock, namespace):
            _tell("claimctl reschedule is stopped")
        stopped = await stop_controller(session.client, session.clock, namespace)
    except StillRuns as error:
        raise CommandFailed(str(error)) from error
    _tell("the controller is stopped" if stopped else "no controller is installed")
    after = await _carried_out(session, wanted, write=True)
    after.removed[:0] = before.removed
    return after


def _run(session: Session, wanted: Wanted, line: Progress) -> Uninstall:
    from claimctl.commands.uninstall.run import Uninstall
    from claimctl.controller.manager import Manager
    from claimctl.controller.settings import Settings

    def make(settings: Settings) -> Manager:
        return Manager(settings, session.transport, session.clock)

    return Uninstall(session.client, session.clock, wanted, make, line.say)


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def exit_code(result: Result) -> int:
    from claimctl.cli.errors import ExitCode

    return ExitCode.FINDINGS if result.left else ExitCode.OK


def _show(result: Result, wanted: Wanted, output: Output, *, verify: bool, dry_run: bool) -> None:
    from claimctl.cli.output import render

    state = "WouldRemove" if dry_run else "Left"
    render(output, table(result, state), document(result, wanted, dry_run=dry_run))
    for note in result.notes:
        _tell(f"note: {note}")
    _tell(conclusion(result, wanted.namespaces, verify=verify, dry_run=dry_run))


def table(result: Result, state: str) -> Table:
    from claimctl.cli.objects import resource_name
    from claimctl.cli.output import Table, columns

    titles = ("NAMESPACE", "KIND", "NAME", "STATE", "REASON", "TIME LEFT", "MESSAGE")
    return Table(
        columns=columns(*titles, text=("MESSAGE",), drop=("STATE",)),
        rows=tuple(
            (one.namespace, one.kind, one.name, state, one.reason, _time(one), one.message)
            for one in result.left
        ),
        names=tuple(resource_name(one.kind, one.name) for one in result.left),
        empty="Nothing of claimctl is left that would block anything.",
    )


def _time(one: Leftover) -> str:
    from claimctl.text import duration

    return duration(one.after) if one.after else ""


def document(result: Result, wanted: Wanted, *, dry_run: bool) -> dict[str, Any]:
    """The stable form for programs."""
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "UninstallReport",
        "dryRun": dry_run,
        "namespaces": list(wanted.namespaces),
        "clean": not result.left,
        "removed": [
            {"kind": one.kind, "namespace": one.namespace, "name": one.name, "what": one.what}
            for one in result.removed
        ],
        "left": [
            {
                "kind": one.kind,
                "namespace": one.namespace,
                "name": one.name,
                "reason": one.reason,
                "message": one.message,
                "afterSeconds": one.after,
            }
            for one in result.left
        ],
        "notes": list(result.notes),
    }


def conclusion(result: Result, namespaces: tuple[str, ...], *, verify: bool, dry_run: bool) -> str:
    """One line: the result, and what to do next."""
    from claimctl.text import counted

    count = len(result.left)
    if not count and namespaces:
        return f"nothing of claimctl is left in {', '.join(namespaces)}"
    if not count:
        return "claimctl can be deleted"
    if dry_run:
        return f"{counted(count, 'object')} would be changed or deleted; nothing was written"
    advice = "run `claimctl uninstall-prepare`" if verify else "do what MESSAGE says, and run again"
    where = counted(count, "object")
    return f"claimctl cannot be deleted yet: something of it is left in {where}; {advice}"
