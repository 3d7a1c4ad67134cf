"""The commands of ``claimctl uninstall``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption, named, namespace_name, namespace_names, switch
from claimctl.cli.timing import WATCH_WAITS, Timing, TimingOption, WatchWaits
from claimctl.commands.orphans.orphans import BelievingOption

NamespacesOption = Annotated[
    list[str] | None,
    named(
        "--namespace -n NAME",
        "A namespace that claimctl is taken out of; may be repeated.",
        "all namespaces",
        check=namespace_names,
    ),
]
TimeoutOption = Annotated[
    float,
    duration_option(
        "--timeout",
        "Time after which the command lists what is left and ends. Another run continues.",
        least=1,
    ),
]
TIMEOUT = Seconds(900)
LeaseNamespaceOption = Annotated[
    str,
    named(
        "--lease-namespace NAME",
        "Namespace of the controller and of its Lease.",
        check=namespace_name,
    ),
]

EXAMPLES = (
    "claimctl uninstall prepare --dry-run",
    "claimctl uninstall prepare",
    "claimctl uninstall prepare -n ml --timeout 10m",
    "claimctl uninstall verify",
    "claimctl uninstall verify -n ml -o json",
    "claimctl uninstall run --dry-run",
    "claimctl uninstall run",
    "claimctl uninstall run --yes --timeout 10m",
)


@connecting_patiently
def prepare(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    dry_run: DryRunOption = False,
    stop: Annotated[
        bool,
        switch(
            "--stop-controller",
            "When nothing is left, scale the controller to 0, stop claimctl reschedule in the "
            "cluster, and look once more: from then on nothing makes another hold or taint.",
        ),
    ] = False,
    timeout: TimeoutOption = TIMEOUT,
    waits: WatchWaits = WATCH_WAITS,
    believing: BelievingOption = False,
    lease_namespace: LeaseNamespaceOption = "claimctl-system",
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Remove everything of claimctl that would block anything, before it is uninstalled.

    Running pods go on. Exit code 3: something has to stay for now; another run continues.
    """
    if stop and (dry_run or namespaces):
        raise UsageError("--stop-controller: not with --dry-run or --namespace")
    from claimctl.commands.uninstall.work import Mode, uninstall, wanted_by

    wanted = wanted_by(namespaces or (), lease_namespace, waits, timeout)
    wanted = replace(wanted, believing=believing)
    return uninstall(access, wanted, output, Mode(dry_run=dry_run, stop=stop))


@connecting_patiently
def verify(
    namespaces: NamespacesOption = None,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show what is left of claimctl that would block anything; write nothing.

    Exit code 0: nothing is left, and claimctl can be deleted. Exit code 3: something is.
    """
    from claimctl.commands.uninstall.work import Mode, uninstall, wanted_by

    wanted = wanted_by(namespaces or ())
    return uninstall(access, wanted, output, Mode(verify=True))


@connecting_patiently
def run(
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = TIMEOUT,
    timing: TimingOption = Timing.NORMAL,
    lease_namespace: LeaseNamespaceOption = "claimctl-system",
    yes: Annotated[bool, switch("--yes", "Do not ask before anything is changed.")] = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Prepare, stop the controller, and delete what `claimctl install` has installed.

    It asks before, with the server and the number of objects. Running pods go on.
    Nothing is deleted while something is left that would block anything (exit
    code 3); another run continues. A namespace other than claimctl-system stays.
    """
    from claimctl.commands.uninstall.work import Mode, ask, uninstall, wanted_by

    wanted = wanted_by((), lease_namespace, WatchWaits(timing), timeout)
    if not (yes or dry_run):
        ask(access, wanted)
    mode = Mode(dry_run=dry_run, stop=not dry_run, delete=True)
    return uninstall(access, wanted, output, mode)
