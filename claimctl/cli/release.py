"""``claimctl release CLAIM``: ask the controller to release a claim, under its own rules.

With ``--orphans`` it frees claims that nobody else will (``orphans``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.options import (
    AllNamespacesOption,
    AsOption,
    ContextOption,
    DryRunOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    object_name,
)

if TYPE_CHECKING:
    from claimctl.cli.session import Access, Session
    from claimctl.inspect.explain import Explanation
    from claimctl.kube.client import Client
    from claimctl.wire.reservations import ClaimReservation

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Flags:
    """What only ``--orphans`` takes; None where the flag was not given."""

    all_namespaces: bool
    yes: bool
    grace_seconds: int | None
    settle_seconds: float | None
    binding_seconds: float | None
    slow_binding_seconds: float | None
    output: Output | None

    def given(self) -> list[str]:
        values = {
            "--all-namespaces": self.all_namespaces or None,
            "--yes": self.yes or None,
            "--force-deleted-pod-grace-seconds": self.grace_seconds,
            "--settle-seconds": self.settle_seconds,
            "--binding-seconds": self.binding_seconds,
            "--slow-binding-seconds": self.slow_binding_seconds,
            "--output": self.output,
        }
        return [name for name, value in values.items() if value is not None]


def _name(value: str | None) -> str | None:
    return None if value is None else object_name(value)


def command(  # noqa: PLR0913 - one parameter per flag
    claim: Annotated[
        str | None,
        typer.Argument(metavar="CLAIM", help="The claim's name.", callback=_name),
    ] = None,
    orphans: Annotated[
        bool,
        typer.Option(
            "--orphans",
            help="Instead of one claim, all that nobody else will free. Prints what would be "
            "done; with --yes does it.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --orphans: free them, and not only print.")
    ] = False,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    dry_run: DryRunOption = False,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="With --orphans: how to print.")
    ] = None,
    grace_seconds: Annotated[
        int | None,
        typer.Option(
            "--force-deleted-pod-grace-seconds",
            metavar="N",
            min=0,
            max=86400,
            help="With --orphans: how long a pod that vanished may still be running, so how "
            "long claims are watched first; else 300. With less, a device may be given away under "
            "such a pod.",
        ),
    ] = None,
    settle_seconds: Annotated[
        float | None,
        typer.Option(
            "--settle-seconds",
            metavar="N",
            min=0,
            max=3600,
            help="With --orphans: longer than a scheduler's cache lags behind; else 5.",
        ),
    ] = None,
    binding_seconds: Annotated[
        float | None,
        typer.Option(
            "--binding-seconds",
            metavar="N",
            min=0,
            max=3600,
            help="With --orphans: longer than a scheduler takes to bind a pod it works on; "
            "else 60.",
        ),
    ] = None,
    slow_binding_seconds: Annotated[
        float | None,
        typer.Option(
            "--slow-binding-seconds",
            metavar="N",
            min=0,
            max=3600,
            help="With --orphans: the same for pods with volumes, gangs, other schedulers; else "
            "600.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
) -> int:
    """Release a claim: its devices are freed as soon as no pod uses them any more.

    With --orphans: find the claims that nobody will ever free (no ClaimReservation names them, no
    pod uses them), and free them with --yes. Exit code 3: some are left.
    """
    from claimctl.cli.session import Access

    access = Access(kubeconfig, context, as_user)
    flags = Flags(
        all_namespaces,
        yes,
        grace_seconds,
        settle_seconds,
        binding_seconds,
        slow_binding_seconds,
        output,
    )
    if orphans:
        _check_orphans(claim, namespace, flags)
        return _release_orphans(access, namespace, flags, dry_run=dry_run)
    return _release_one(access, namespace, _only_claim(claim, flags), dry_run=dry_run)


def _only_claim(claim: str | None, flags: Flags) -> str:
    from claimctl.cli.errors import UsageError

    if claim is None:
        raise UsageError("name the CLAIM to release, or give --orphans")
    if flags.given():
        raise UsageError(f"{flags.given()[0]} goes with --orphans, not with a CLAIM")
    return claim


def _check_orphans(claim: str | None, namespace: str | None, flags: Flags) -> None:
    from claimctl.cli.errors import UsageError

    if claim is not None:
        raise UsageError(f"--orphans looks at all claims: leave out the CLAIM {claim!r}")
    if namespace is not None and flags.all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")


def _release_orphans(access: Access, namespace: str | None, flags: Flags, *, dry_run: bool) -> int:
    from claimctl.cli.orphans import Wanted, run
    from claimctl.cli.session import in_session

    async def work(session: Session) -> int:
        wanted = Wanted(
            namespace="" if flags.all_namespaces else namespace or session.namespace,
            write=flags.yes and not dry_run,
            grace_seconds=flags.grace_seconds,
            settle_seconds=flags.settle_seconds,
            binding_seconds=flags.binding_seconds,
            slow_binding_seconds=flags.slow_binding_seconds,
        )
        return await run(session, wanted, flags.output or Output.TABLE)

    return in_session(access, work)


def _release_one(access: Access, namespace: str | None, claim: str, *, dry_run: bool) -> int:
    from claimctl.cli.session import in_session

    async def work(session: Session) -> int:
        from claimctl.inspect.explain import explain

        place = namespace or session.namespace
        explanation = await explain(session.client, place, claim, session.clock.now())
        _check(explanation)
        if not dry_run:
            await ask(session.client, explanation)
        for line in lines(explanation, dry_run=dry_run):
            typer.echo(line)
        return 0

    return in_session(access, work)


def _check(explanation: Explanation) -> None:
    """Refuse what a release could not do anything about.

    Raises:
        CommandFailed: there is no reservation, or nothing is held.
    """
    from claimctl.cli.errors import CommandFailed

    view = explanation.view
    name = f"claim {view.namespace}/{view.name}"
    if not view.reservations:
        raise CommandFailed(
            f"no ClaimReservation names {name}, so claimctl does not hold it: "
            f"{explanation.advice()[0].rstrip('.')}"
        )
    if view.claim.status.allocation is None:
        raise CommandFailed(f"{name} is not allocated: there is nothing to release")


async def ask(client: Client, explanation: Explanation) -> None:
    """Put the request on every reservation of the claim; asking twice changes nothing."""
    for one in explanation.view.reservations:
        await _annotate(client, one, explanation.view.claim.metadata.uid)


async def _annotate(client: Client, reservation: ClaimReservation, claim_uid: str) -> None:
    """Under the reservation's version, which its controller may move on at any time."""
    from claimctl.kube.errors import Conflict
    from claimctl.wire.reservations import RELEASE_ANNOTATION
    from claimctl.wire.resources import CLAIMRESERVATIONS

    meta = reservation.metadata
    patch = {"metadata": {"annotations": {RELEASE_ANNOTATION: claim_uid}}}
    for attempt in range(ATTEMPTS):
        if meta.annotation(RELEASE_ANNOTATION) == claim_uid:
            return
        try:
            await client.merge_patch(
                CLAIMRESERVATIONS,
                meta.name,
                patch,
                meta.namespace,
                resource_version=meta.resource_version,
            )
            return
        except Conflict:
            if attempt == ATTEMPTS - 1:
                raise
            meta = (await client.get(CLAIMRESERVATIONS, meta.name, meta.namespace)).metadata


def lines(explanation: Explanation, *, dry_run: bool) -> list[str]:
    """What was asked, and what happens next."""
    view = explanation.view
    count = len(view.reservations)
    where = f"{count} ClaimReservation{'s' if count > 1 else ''}"
    verb = "would be asked (dry run)" if dry_run else "asked"
    head = f"release of claim {view.namespace}/{view.name} {verb} on {where}"
    if not explanation.obstacles:
        return [head, "nothing stands against it: the controller frees its devices now"]
    return [
        head,
        "it waits until nothing stands against it any more:",
        *(f"  {one.reason}: {one.message}" for one in explanation.obstacles),
    ]
