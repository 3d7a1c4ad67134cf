"""``claimctl release CLAIM``: asks the controller to release a claim, by its own rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from claimctl.cli.documents import Document, Names, ReasonToWait, by_names, says
from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import print_text
from claimctl.cli.printer import print_lines, say
from claimctl.cli.progress import Progress, progress
from claimctl.cli.session import Session
from claimctl.cli.watching import changes
from claimctl.commands.claims import controller_health
from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.controller_health import Trouble
from claimctl.commands.claims.explanation import Explanation, explain, explain_with_controller
from claimctl.commands.claims.missing import naming
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.live_objects import change_object
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.users.statements import (
    ALL_PODS,
    about_node,
    about_pod,
    concerns,
    with_statement,
)
from claimctl.text import counted, listed
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ENDED_PODS_ANNOTATION, RELEASE_ANNOTATION, ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, NODES, PODS


class ReleaseRequest(Document, frozen=True, kw_only=True):
    """``claimctl release``"""

    dry_run: bool
    cancelled: Annotated[bool, says("whether the request was withdrawn")] = False
    namespace: str
    name: str
    uid: str
    reservations: Annotated[Names, says("names of the ClaimReservations that are asked")]
    blockers: Annotated[tuple[ReasonToWait, ...], says("what the release waits for")]
    troubles: Annotated[tuple[Trouble, ...], says("why no controller acts on it now")]


@dataclass(frozen=True, slots=True)
class ReleaseWanted:
    """What is to be done; ``wait`` is for how many seconds to wait, None for not at all."""

    claim: str
    dry_run: bool
    wait: float | None
    output: Output
    cancel: bool = False
    """Withdraw the request instead."""
    node_is_off: str = ""
    """State that this node is off instead; '' for no statement."""
    pod_has_ended: str = ""
    """State that this pod has ended instead; '' for no statement."""


async def release(session: Session, wanted: ReleaseWanted) -> int:
    """Ask for the release, and wait for it if that is wanted; the exit code."""
    client, place = session.client, session.namespace
    async with naming(client, CLAIM, place, wanted.claim):
        explanation = await explain_with_controller(client, place, wanted.claim, session.clock)
    if wanted.cancel:
        return await withdraw(client, explanation, wanted)
    if wanted.node_is_off or wanted.pod_has_ended:
        return await state(client, explanation, wanted)
    _check(explanation)
    if not wanted.dry_run and not _goes_on_anyway(explanation):
        await ask(client, explanation)
    show(lines(explanation, dry_run=wanted.dry_run), explanation, wanted)
    if wanted.wait is not None:
        err = not wanted.output.for_people
        return await until_free(session, explanation, wanted.wait, err=err)
    return ExitCode.FINDINGS if explanation.troubles else ExitCode.OK


async def withdraw(client: Client, explanation: Explanation, wanted: ReleaseWanted) -> int:
    """Withdraw the request of a release."""
    view = explanation.view
    name = f"claim {view.namespace}/{view.name}"
    if not view.release_asked:
        raise CommandFailed(f"no release of {name} is asked for, or it is done")
    if not wanted.dry_run:
        await ask(client, explanation, withdraw=True)
        with suppress(NotFound):  # released meanwhile
            now = explanation.assessment.snapshot.now
            explanation = await explain(client, view.namespace, view.name, now)
    verb = "would be withdrawn (dry run)" if wanted.dry_run else "is withdrawn"
    line = f"the request to release {name} {verb}"
    if explanation.release not in (None, Reason.RELEASE_REQUESTED):
        line = f"{line}; the claim is released all the same ({explanation.release})"
    show([line], explanation, wanted)
    return ExitCode.OK


async def state(client: Client, explanation: Explanation, wanted: ReleaseWanted) -> int:
    """State that pods of the claim that vanished have ended: from a node that is off, or one pod.

    The status need not name them: the controller may know of pods that it could not record.

    Raises:
        CommandFailed: the node is ready, the pod exists, or no ClaimReservation names the claim.
    """
    view, node, pod = explanation.view, wanted.node_is_off, wanted.pod_has_ended
    _check_reserved(explanation)
    if node and await _is_ready(client, node):
        raise CommandFailed(
            f"node {node} is ready, so its kubelet ends its pods: wait for it, or switch the "
            "node off first"
        )
    if pod and pod != ALL_PODS and await client.find(PODS, pod, view.namespace) is not None:
        raise CommandFailed(f"pod {view.namespace}/{pod} exists: wait until it is gone")
    subject = about_node(node) if node else about_pod(pod)
    recorded = [
        ghost
        for reservation in view.reservations
        for ghost in reservation.status.force_deleted_pods
        if concerns(subject, ghost)
    ]
    if not wanted.dry_run:
        # pods that vanish later are not meant
        version = await client.version_now(CLAIMRESERVATIONS, view.namespace)
        stated = partial(with_statement, subject=subject, version=version, known=recorded)
        await _annotate_each(client, explanation, ENDED_PODS_ANNOTATION, stated)
    verb = "would count no more (dry run)" if wanted.dry_run else "count no more"
    names = listed({ghost.name for ghost in recorded}) or "no status names one"
    head = f"pod {pod} has ended: such pods that vanished until now"
    if node:
        head = f"node {node} is off: pods that vanished from it"
    elif pod == ALL_PODS:
        head = "pods have ended: all that vanished until now"
    show([f"{head} {verb}: {names}"], explanation, wanted)
    return ExitCode.OK


async def _is_ready(client: Client, name: str) -> bool:
    node = await client.find(NODES, name)
    ready = find_condition(node.status.conditions, "Ready") if node is not None else None
    return ready is not None and ready.status == "True"


def show(shown: list[str], explanation: Explanation, wanted: ReleaseWanted) -> None:
    document = request_of(explanation, dry_run=wanted.dry_run, cancelled=wanted.cancel)
    print_text(wanted.output, shown, document, (resource_name(CLAIM, explanation.view.name),))


def request_of(
    explanation: Explanation, *, dry_run: bool, cancelled: bool = False
) -> ReleaseRequest:
    view = explanation.view
    return ReleaseRequest(
        dry_run=dry_run,
        cancelled=cancelled,
        namespace=view.namespace,
        name=view.name,
        uid=view.claim.metadata.uid,
        reservations=tuple(reservation.metadata.name for reservation in view.reservations),
        blockers=by_names(explanation.obstacles, tuple[ReasonToWait, ...]),
        troubles=explanation.troubles,
    )


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
        with progress(f"waiting until {name} is free") as line:
            async with asyncio.timeout(limit or None):
                await _free(session, asked, line)
    except TimeoutError:
        say(
            f"{name} is still allocated after {limit:g} s; {_stays(asked)}, or see "
            f"`claimctl explain {view.name} -n {view.namespace}`"
        )
        return ExitCode.FINDINGS
    except asyncio.CancelledError:  # Ctrl-C
        say(_stays(asked))
        raise
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


def _check(explanation: Explanation) -> None:
    """Raise CommandFailed if a release would do nothing: there is no ClaimReservation, or the claim
    is not allocated."""
    view = explanation.view
    name = f"claim {view.namespace}/{view.name}"
    if view.claim.status.allocation is None:
        raise CommandFailed(f"{name} is not allocated: there is nothing to release")
    _check_reserved(explanation)


def _check_reserved(explanation: Explanation) -> None:
    view = explanation.view
    if not view.reservations:
        raise CommandFailed(
            f"no ClaimReservation names claim {view.namespace}/{view.name}, so claimctl does not "
            f"hold it: {advice(explanation)[0].rstrip('.')}"
        )


async def ask(client: Client, explanation: Explanation, *, withdraw: bool = False) -> None:
    """Annotate every ClaimReservation of the claim, or take the annotations away. A second call
    changes nothing. The controller may write the objects meanwhile."""
    uid = explanation.view.claim.metadata.uid

    def asked(known: str) -> str:
        return ("" if known == uid else known) if withdraw else uid

    await _annotate_each(client, explanation, RELEASE_ANNOTATION, asked)


async def _annotate_each(
    client: Client, explanation: Explanation, annotation: str, changed: Callable[[str], str]
) -> None:
    """Change the annotation of every ClaimReservation of the claim; '' means that it is absent."""

    def patch(current: ClaimReservation) -> dict[str, Any]:
        known = current.metadata.annotation(annotation) or ""
        value = changed(known)
        change = {"metadata": {"annotations": {annotation: value or None}}}
        return {} if value == known else change

    for reservation in explanation.view.reservations:
        meta = reservation.metadata
        await change_object(client, CLAIMRESERVATIONS, meta.name, patch, meta.namespace)


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
