"""``claimctl release CLAIM``: asks the controller to release a claim, by its own rules."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import ClaimArgument, DryRunOption, NamespaceOption, named, switch

EXAMPLES = (
    "claimctl release train-slice --dry-run  # what would happen, and what blocks it",
    "claimctl release train-slice",
    "claimctl release train-slice -n ml --wait --timeout 10m",
    "claimctl release train-slice --cancel   # withdraw the request",
    "claimctl release train-slice --node-is-off node-3  # its vanished pods do not run any more",
    "claimctl release train-slice --pod-has-ended train-7x2kq",
)


@connecting
def command(  # noqa: PLR0913 - one parameter per flag
    claim: ClaimArgument,
    namespace: NamespaceOption = None,
    dry_run: DryRunOption = False,
    wait: Annotated[bool, switch("--wait", "Wait until the devices are free.")] = False,
    cancel: Annotated[
        bool, switch("--cancel", "Withdraw a request that has not been met yet.")
    ] = False,
    node_is_off: Annotated[
        str,
        named(
            "--node-is-off NODE",
            "State that this node is off: pods that vanished from it count no more. Asks for no "
            "release.",
        ),
    ] = "",
    pod_has_ended: Annotated[
        str,
        named(
            "--pod-has-ended POD",
            "State that this pod, which vanished, runs no more: by name or UID; '*' for all that "
            "vanished until now. Asks for no release.",
        ),
    ] = "",
    timeout: Annotated[
        float,
        duration_option(
            "--timeout",
            "How long --wait waits; then exit code 3, and the request stays; 0: no limit.",
        ),
    ] = Seconds(300),
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Ask for a release: the controller frees the devices as soon as no pod uses them.

    Exit code 3: the request is on record, but no controller acts on it now; or --timeout passed.
    """
    if wait and dry_run:
        raise UsageError("--wait and --dry-run exclude each other")
    if wait and cancel:
        raise UsageError("--wait and --cancel exclude each other")
    if node_is_off and pod_has_ended:
        raise UsageError("--node-is-off and --pod-has-ended exclude each other")
    if (node_is_off or pod_has_ended) and (wait or cancel):
        flag = "--node-is-off" if node_is_off else "--pod-has-ended"
        raise UsageError(f"{flag} excludes --wait and --cancel")
    from claimctl.cli.session import in_session
    from claimctl.commands.claims.release_request import ReleaseWanted
    from claimctl.commands.claims.release_work import release

    limit = timeout if wait else None
    wanted = ReleaseWanted(claim, dry_run, limit, output, cancel, node_is_off, pod_has_ended)
    return in_session(access, release, namespace, wanted)
