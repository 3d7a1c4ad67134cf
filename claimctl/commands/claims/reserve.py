"""``claimctl reserve WORKLOAD``: reserves a workload's claims for it, by annotation."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.objects import RESERVED_FOR, parse
from claimctl.cli.options import DryRunOption, NamespaceOption, claim_names, named, switch

EXAMPLES = (
    "claimctl reserve deploy/train --dry-run # what would be written, and which claims it reaches",
    "claimctl reserve deploy/train",
    "claimctl reserve deploy/train -n ml --claim train-slice --idle-timeout 1h",
)


class Retention(StrEnum):
    """The policies that an annotation can ask for."""

    WHILE_RUNNING = "WhileRunning"
    PERSISTENT = "Persistent"


@connecting
def command(  # noqa: PLR0913 - one parameter per flag
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD",
            help="The workload: deploy/NAME, sts/NAME, job/NAME, or another kind with a rule.",
        ),
    ],
    namespace: NamespaceOption = None,
    claims: Annotated[
        list[str] | None,
        named(
            "--claim NAME",
            "A claim to reserve; may be repeated.",
            "all that the pod template names",
            check=claim_names,
        ),
    ] = None,
    retention: Annotated[
        Retention | None,
        typer.Option(
            "--retention-policy",
            help="WhileRunning: until the workload has been idle for --idle-timeout. Persistent: "
            "until it is deleted. [default: as it is annotated, else WhileRunning]",
            show_default=False,
        ),
    ] = None,
    idle_timeout: Annotated[
        float | None,
        duration_option(
            "--idle-timeout",
            "How long devices are kept for a workload without pods. [default: as it is annotated, "
            "else 60s]",
            most=2**31 - 1,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    wait: Annotated[bool, switch("--wait", "Wait until the claims are reserved.")] = False,
    timeout: Annotated[
        float, duration_option("--timeout", "How long --wait waits; then exit code 3; 0: no limit.")
    ] = Seconds(300),
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Keep the devices of a workload's claims for the workload, through restarts and rollouts.

    It writes the annotation claimctl.io/reserve; the pods go on. It refuses what would reserve
    nothing, such as a claim that the pod template does not name. Exit code 3: the annotation is
    written, but no controller acts on it now; or --timeout passed.
    """
    if wait and dry_run:
        raise UsageError("--wait and --dry-run exclude each other")
    if "/" not in workload:
        raise UsageError(f"{workload!r}: put the kind before the name, as in deploy/{workload}")
    kind, name = parse(workload, "", RESERVED_FOR, others=True)
    from claimctl.cli.session import in_session
    from claimctl.commands.claims.reserve_work import Wanted, reserve

    idle = None if idle_timeout is None else round(idle_timeout)
    policy = retention.value if retention else None
    wanted = Wanted(kind, name, tuple(claims or ()), policy, idle, dry_run)
    limit = timeout if wait else None
    return in_session(access, reserve, namespace, wanted, output, limit)
