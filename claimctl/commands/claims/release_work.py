"""``claimctl release CLAIM``: asks the controller to release a claim, by its own rules."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.objects import CLAIM
from claimctl.cli.printer import print_lines, say
from claimctl.cli.progress import Progress, progress
from claimctl.cli.session import Session, if_interrupted
from claimctl.cli.watching import changes
from claimctl.commands.claims import controller_health
from claimctl.commands.claims.ended_pods import state_ended
from claimctl.commands.claims.explanation import Explanation, explain, explain_with_controller
from claimctl.commands.claims.missing import naming
from claimctl.commands.claims.release_request import (
    ReleaseWanted,
    annotate_each,
    check_reserved,
    show,
)
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.reservation.facts.reasons import Reason
from claimctl.text import counted
from claimctl.wire.reservations import RELEASE_ANNOTATION


async def release(session: Session, wanted: ReleaseWanted) -> int:
    """Ask for the release, and wait for it if that is wanted; the exit code."""
    client, place = session.client, session.namespace
    async with naming(client, CLAIM, place, wanted.claim):
        explanation = await explain_with_controller(client, place, wanted.claim, session.clock)
    if wanted.cancel:
        return await withdraw(client, explanation, wanted)
    if wanted.node_is_off or wanted.pod_has_ended:
        return await state_ended(client, explanation, wanted)
    _check(explanation)
    if not wanted.dry_run and not _goes_on_anyway(explanation):
        await ask(client, explanation)
    show(lines(explanation, dry_run=wanted.dry_run), explanation, wanted)
    if wanted.wait is not None:
        err = not wanted.output.for_people
        return await until_free(session, explanation, wanted.wait, err=err)
    return ExitCode.FINDINGS if explanation.troubles else ExitCode.OK


def _check(explanation: Explanation) -> None:
    """Raise CommandFailed if a release would do nothing: there is no ClaimReservation, or the claim
    is not allocated."""
    view = explanation.view
    name = f"claim {view.namespace}/{view.name}"
    if view.claim.status.allocation is None:
        raise CommandFailed(f"{name} is not allocated: there is nothing to release")
    check_reserved(explanation)


async def ask(client: Client, explanation: Explanation) -> None:
    """Ask for the release by an annotation of every ClaimReservation of the claim. A second call
    changes nothing. The controller may write the objects meanwhile."""
    uid = explanation.view.claim.metadata.uid
    await annotate_each(client, explanation, RELEASE_ANNOTATION, lambda _: uid)


def lines(explanation: Explanation, *, dry_run: bool) -> list[str]:
    """The request, and what happens next, as text."""
    view = explanation.view
    where = counted(len(view.reservations), "ClaimReservation")
    verb = "would be asked (dry run)" if dry_run else "asked"
    head = f"release of claim {view.namespace}/{view.name} {verb} on {where}"
    if _goes_on_anyway(explanation):
        name = f"claim {view.namespace}/{view.name}"
        head = f"{name} is being released already ({explanation.release}): nothing to ask for"
    obstacles = [f"  {blocker.reason}: {blocker.message}" for blocker in explanation.obstacles]
    if explanation.troubles:
        return [
            head,
            "it waits until a controller acts again:",
            *(f"  {trouble.sign}: {trouble.message}" for trouble in explanation.troubles),
            *obstacles,
            *controller_health.advice(explanation.troubles),
        ]
    if not obstacles:
        election, next_ = explanation.election, "the controller frees its devices now"
        if election is not None and election.state != "Acting":
            next_ = f"a controller frees its devices when it acts ({election.message})"
        return [head, f"nothing blocks it: {next_}"]
    stays = [] if dry_run else [_stays(explanation)]
    return [head, "it waits until nothing blocks it any more:", *obstacles, *stays]


async def withdraw(client: Client, explanation: Explanation, wanted: ReleaseWanted) -> int:
    """Withdraw the request of a release."""
    view = explanation.view
    name = f"claim {view.namespace}/{view.name}"
    if not view.release_asked:
        raise CommandFailed(f"no release of {name} is asked for, or it is done")

    def without_request(known: str) -> str:
        return "" if known == view.claim.metadata.uid else known

    if not wanted.dry_run:
        await annotate_each(client, explanation, RELEASE_ANNOTATION, without_request)
        with suppress(NotFound):  # released meanwhile
            now = explanation.assessment.snapshot.now
            explanation = await explain(client, view.namespace, view.name, now)
    verb = "would be withdrawn (dry run)" if wanted.dry_run else "is withdrawn"
    line = f"the request to release {name} {verb}"
    if explanation.release not in (None, Reason.RELEASE_REQUESTED):
        line = f"{line}; the claim is released all the same ({explanation.release})"
    show([line], explanation, wanted)
    return ExitCode.OK


async def until_free(
    session: Session, asked: Explanation, limit: float, *, err: bool = False
) -> int:
    """Wait until the claim of the request is not allocated, and tell what it waits for.

    Args:
        limit: seconds; 0 means no limit.
        err: whether to say on stderr that the claim is released.

    Returns:
        0 when the devices are free; 3 when ``limit`` seconds have passed before.
    """
    view = asked.view
    name = f"claim {view.namespace}/{view.name}"
    try:
        with (
            if_interrupted(_stays(asked)),
            progress(f"waiting until {name} is free") as line,
        ):
            async with asyncio.timeout(limit or None):
                await _free(session, asked, line)
    except TimeoutError:
        say(
            f"{name} is still allocated after {limit:g} s; {_stays(asked)}, or see "
            f"`claimctl explain {view.name} -n {view.namespace}`"
        )
        return ExitCode.FINDINGS
    (say if err else print_lines)(f"{name} is released")
    return ExitCode.OK


_FINAL = frozenset({Reason.CLAIM_DELETED, Reason.WITHDRAWN})
"""Why a claim is released whether or not somebody asks for it."""


def _goes_on_anyway(explanation: Explanation) -> bool:
    """Whether a release is under way that a request would not change."""
    return explanation.release in _FINAL


def _stays(explanation: Explanation) -> str:
    """What happens while nobody waits for the release."""
    if _goes_on_anyway(explanation):
        return f"the release goes on ({explanation.release})"
    view = explanation.view
    command = f"claimctl release --cancel {view.name} -n {view.namespace}"
    return f"the request stays; withdraw it with `{command}`"


async def _free(session: Session, asked: Explanation, line: Progress) -> None:
    """Return when the claim is not allocated, is gone, or is another claim of the same name."""
    namespace, name = asked.view.namespace, asked.view.name
    messages_before = tuple(blocker.message for blocker in asked.obstacles)
    async with changes(session.client, session.clock, namespace) as news:
        async for _ in news:
            try:
                now = await explain(session.client, namespace, name, session.clock.now())
            except NotFound:
                return
            claim = now.view.claim
            is_another = claim.metadata.uid != asked.view.claim.metadata.uid
            if is_another or claim.status.allocation is None:
                return
            messages = tuple(blocker.message for blocker in now.obstacles)
            if messages != messages_before:
                messages_before = messages
                line.say(f"waits: {'; '.join(messages_before) or 'the controller releases it'}")
