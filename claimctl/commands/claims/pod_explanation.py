"""Read what explains a pod: its claims, who has their devices, and its Events."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from claimctl.cli import extensions
from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.claim_view import ClaimView, views
from claimctl.commands.claims.device_classes import (
    CLAIMS_WITH_REQUESTS,
    PUBLISHED_DEVICES,
    device_classes,
    everywhere,
    shortfall,
)
from claimctl.commands.claims.election import election
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.ordinals import (
    sticky_names,
    unmade,
)
from claimctl.commands.claims.places import read_plans
from claimctl.commands.claims.pod_view import ClaimUse, PodFindings, RivalClaim
from claimctl.downgrade.scope import crosses
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.live_objects import list_if_allowed
from claimctl.reservation.facts.references import is_workload
from claimctl.wire import resources as wire
from claimctl.wire.coordination import Event
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.seams import Clock
from claimctl.wire.traces import WHOLE_PODS


async def explain_pod(client: Client, namespace: str, name: str, clock: Clock) -> PodFindings:
    """Explain one pod; NotFound if it does not exist."""
    pod = await client.get(WHOLE_PODS, name, namespace)
    return await findings_of(client, KindReader(client), pod, clock, {})


async def findings_of(
    client: Client, kinds: KindReader, pod: Pod, clock: Clock, known: dict[str, ClaimUse]
) -> PodFindings:
    """Explain a pod that was read.

    Args:
        known: the claims that were explained already, by name; those of the pod are added.
    """
    uses = []
    for use in claim_uses(pod):
        if use.claim not in known or not use.claim:
            known[use.claim] = await with_claim(client, kinds, pod.metadata.namespace, use, clock)
        uses.append(replace(known[use.claim], entry=use.entry, template=use.template))
    uses = await _unmade(client, pod, uses, clock)
    owners = tuple(f"{owner.kind.lower()}/{owner.name}" for owner in await kinds.chain(pod))
    gone = await _is_group_gone(client, pod)
    words = extensions.about_pod(pod)
    findings = PodFindings(pod, tuple(uses), owners=owners, group_gone=gone, words=words)
    if gone:
        plans = await read_plans(client)
        findings = replace(findings, upgrade=None if plans is None else any(map(crosses, plans)))
    if findings.state in ("Waiting", "Starting"):
        warnings = await warnings_about(client, pod.metadata)
        notes = tuple(dict.fromkeys(f"{event.reason}: {event.note}" for event in warnings))
        findings = replace(findings, warnings=notes)
    if findings.state == "Waiting" and findings.may_lack_devices:
        findings = replace(findings, rivals=await _rivals(client, findings))
    return findings


async def _unmade(client: Client, pod: Pod, uses: list[ClaimUse], clock: Clock) -> list[ClaimUse]:
    """The same entries; of sticky claims that are not there, why claimctl has not made them."""
    waiting = sticky_names(pod) & {use.claim for use in uses if use.explanation is None}
    if not waiting:
        return uses
    elected = await election(client, clock.now())
    every = await list_if_allowed(client, wire.CLAIMRESERVATIONS, pod.metadata.namespace)
    texts = {
        name: unmade(
            pod,
            name,
            (made for made in every.items if made.spec.resource_claim_name == name),
            elected.message,
        )
        for name in waiting
    }
    return [
        replace(use, problem=texts[use.claim], unmade=True) if use.claim in waiting else use
        for use in uses
    ]


async def _is_group_gone(client: Client, pod: Pod) -> bool:
    """Whether the pod's PodGroup does not exist; False without the right to read it."""
    name, namespace = pod.spec.group_name, pod.metadata.namespace
    with suppress(Forbidden, UnreadableObject):
        return bool(name) and await client.find(wire.PODGROUPS, name, namespace) is None
    return False


def claim_uses(pod: Pod) -> tuple[ClaimUse, ...]:
    """The entries of the pod's ``spec.resourceClaims``, with the names of generated claims."""
    made = {
        status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses
    }
    uses = [
        ClaimUse(
            entry=entry.name,
            claim=entry.resource_claim_name or made.get(entry.name) or "",
            template=entry.resource_claim_template_name or "",
        )
        for entry in pod.spec.resource_claims
    ]
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        uses.append(ClaimUse("extended resources", extended.resource_claim_name))
    return tuple(uses)


async def with_claim(
    client: Client, kinds: KindReader, namespace: str, use: ClaimUse, clock: Clock
) -> ClaimUse:
    """The entry with its claim explained, or with the problem because of which it is not."""
    if not use.claim:
        text = f"the claim from template {use.template} is not made yet"
        return replace(use, problem=text)
    try:
        explanation = await explain(client, namespace, use.claim, clock.now(), kinds)
    except NotFound:
        return replace(use, problem=f"claim {use.claim} does not exist")
    except UnreadableObject as error:
        return replace(use, problem=error.unreadable.describe())
    return replace(use, explanation=explanation)


async def warnings_about(client: Client, about: ObjectMeta) -> list[Event]:
    """The Warning events about an object, oldest first; none if they may not be listed."""
    events = await list_if_allowed(client, wire.EVENTS, about.namespace)
    own = (event for event in events.items if event.type == "Warning" and event.is_about(about))
    return sorted(own, key=last_seen)


def last_seen(event: Event) -> str:
    """When the Event happened last; kubelets set the time of the core API only."""
    last = event.series.last_observed_time if event.series is not None else ""
    return last or event.event_time or event.deprecated_last_timestamp or ""


async def _rivals(client: Client, findings: PodFindings) -> tuple[RivalClaim, ...]:
    """The claims with devices of the classes that the pod's claims without devices ask for."""
    claims_of_pod = (use.explanation.view.claim for use in findings.uses if use.explanation)
    waiting = {it.metadata.key for it in claims_of_pod if it.status.allocation is None}
    if not waiting:
        return ()
    place = findings.pod.metadata.namespace
    every = await everywhere(client, CLAIMS_WITH_REQUESTS, place)
    own = [claim for claim in every if claim.metadata.key in waiting]
    wanted = frozenset(name for claim in own for name in device_classes(claim))
    allocated = (claim for claim in every if claim.status.allocation is not None)
    claims = [claim for claim in allocated if device_classes(claim) & wanted]
    shown = views(claims, (), await everywhere(client, wire.CLAIMRESERVATIONS, place))
    slices = (await list_if_allowed(client, PUBLISHED_DEVICES)).items
    by_uid = {claim.metadata.uid: claim for claim in claims}
    busy = [view.claim for view in shown if not _is_held_idle(view)]
    rivals = []
    for view in shown:
        idle, claim = _is_held_idle(view), by_uid[view.claim.metadata.uid]
        why = shortfall(own, claim, busy, slices) if idle else None
        rivals.append(RivalClaim(view.namespace, view.name, view.devices, view.holders, idle, why))
    return tuple(sorted(rivals, key=lambda rival: not rival.idle))


def _is_held_idle(view: ClaimView) -> bool:
    """Whether the list has a hold, and every ClaimReservation reports since when no pod uses it: a
    status that was not written yet reports no pod either."""
    held = any(map(is_workload, view.claim.status.reserved_for)) and bool(view.reservations)
    statuses = [reservation.status for reservation in view.reservations]
    return held and not any(status.consumers or not status.idle_since for status in statuses)
