"""``claimctl orphans``: finds allocated claims that no component will release, and frees them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import AllNamespacesOption, DryRunOption, NamespaceOption


def _seconds(flag: str, help_: str) -> Any:
    return duration_option(flag, help_, most=3600)


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
        float | None,
        duration_option(
            "--force-deleted-pod-grace-seconds",
            "How long a vanished pod may still be running. Claims are watched for as long first. "
            "With less time such a pod may lose its device. [default: 300]",
            most=86400,
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
    if namespace is not None and all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")

    from claimctl.commands.orphans.work import Wanted, handle_orphans, watch_times

    times = watch_times(
        grace_seconds=grace_seconds,
        settle_seconds=settle_seconds,
        binding_seconds=binding_seconds,
        slow_binding_seconds=slow_binding_seconds,
    )
    place = "" if all_namespaces else namespace
    return handle_orphans(access, place, Wanted("", yes and not dry_run, times), output)
