"""Explain why a claim is held and what would release it, by the controller's own decision.

Nothing is written. Each look reads everything live and once (``claim_reading``). What only a
controller can know that watched all the time, such as which pods vanished, is taken from the
statuses of ClaimReservations (``recorded``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.asking import Asker, asking
from claimctl.commands.claims.claim_reading import read_claim, with_devices
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.controller_health import Trouble, troubles
from claimctl.commands.claims.device_notes import device_notes
from claimctl.commands.claims.election import Election, election
from claimctl.commands.claims.holders import read_holder
from claimctl.commands.claims.judgement import judged, see_why, waiting_pods
from claimctl.commands.claims.matters import OF_DEVICES, Matter, MatterKind
from claimctl.commands.claims.places import not_known
from claimctl.commands.claims.recorded import Recorded
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import Orphan
from claimctl.commands.orphans.scan import OwnerReader
from claimctl.kube.client import Client
from claimctl.parallel import side_by_side
from claimctl.reservation.assessment.assess import Assessment, assess
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.dialects import recorded_dialect
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.reservation.facts.unreadable import about_claim
from claimctl.reservation.users.blockers import PENDING_PODS_GIVE_WAY, blockers
from claimctl.text import duration
from claimctl.wire.meta import find_condition
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

PAUSES = (0.5, 1.0, 1.5, 2.0)
"""Seconds between two looks at a sign that may be a short delay. A controller that acts has written
its status when they are over, and mostly after the first one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of ``claimctl explain``.

    ``release`` is the reason of a release that is under way. ``obstacles`` are the blockers of a
    release now.
    """

    view: ClaimView
    assessment: Assessment
    release: Reason | None
    obstacles: tuple[Blocker, ...]
    election: Election | None = None
    """None if the Lease was not read; then there are no troubles either."""
    troubles: tuple[Trouble, ...] = ()
    """Signs that the controller does not act, or that its writes fail."""
    orphan: Orphan | None = None
    """Set if the claim is an orphan."""
    asking: tuple[Asker, ...] = ()
    """The workloads whose annotation concerns the claim: all if no ClaimReservation does, else
    those with a wrong annotation."""
    uncreated: Mapping[str, str] = field(default_factory=dict)
    """What workloads that hold the claim report about pods they cannot create, by their UIDs."""
    devices: tuple[str, ...] = ()
    """One line for each matter of the claim's devices."""
    watched_since: datetime | None = None
    """When the controller that acts began to lead, if it counts from then at the latest."""
    unknown: tuple[str, ...] = ()
    """What cannot be said about the devices, because the user may not list something."""

    @property
    def matters(self) -> tuple[Matter, ...]:
        """What is wrong with the claim, but for what is said of a release under way anyway."""
        said = {MatterKind.RELEASE_WAITS} if self.release is not None else set()
        return tuple(it for it in self.view.matters if it.kind not in said)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the devices, and what is wrong."""
        return (*self.devices, *map(str, self.matters), *self.unknown)

    @property
    def steps(self) -> tuple[str, ...]:
        """What to do about the matters. A release under way ends those of devices by itself."""
        under_way = self.release is not None
        known = (it for it in self.matters if not (under_way and it.kind in OF_DEVICES))
        return tuple(dict.fromkeys(step for matter in known for step in matter.steps))

    @property
    def steps_for_pods(self) -> tuple[str, ...]:
        """The same for somebody who looks at a pod: not that the pod is to be looked at."""
        seen = (see_why(self.view),) if waiting_pods(self.view) else ()
        return tuple(step for step in self.steps if step not in seen)

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The unreadable objects that concern the claim."""
        return self.assessment.snapshot.unreadable

    @property
    def left_alone(self) -> bool:
        """Whether an unreadable object keeps the controller from any decision on the claim."""
        return bool(about_claim(self.unreadable))

    @property
    def releasable(self) -> bool:
        """Whether `claimctl release` would free the devices now."""
        return (
            self.view.claim.status.allocation is not None
            and bool(self.assessment.retentions)
            and not self.obstacles
            and not self.left_alone
        )


async def explain_with_controller(
    client: Client, namespace: str, name: str, clock: Clock
) -> Explanation:
    """Explain a claim, and find out whether a controller acts on it.

    A sign that may be a short delay counts only if each look during the ``PAUSES`` shows it.

    Raises:
        NotFound: the claim does not exist.
        UnreadableObject: the claim cannot be read.
    """
    explanation = await _with_troubles(client, namespace, name, clock)
    for pause in PAUSES:
        if all(trouble.lasting for trouble in explanation.troubles):
            break
        await clock.sleep(pause)
        again = await _with_troubles(client, namespace, name, clock)
        before = {(trouble.sign, trouble.reservation) for trouble in explanation.troubles}
        still = (
            trouble
            for trouble in again.troubles
            if trouble.lasting or (trouble.sign, trouble.reservation) in before
        )
        explanation = replace(again, troubles=tuple(still))
    return explanation


async def _with_troubles(client: Client, namespace: str, name: str, clock: Clock) -> Explanation:
    async with side_by_side() as group:
        elected = group.create_task(election(client, clock.now()))
        explanation = await explain(client, namespace, name, clock.now(), elected=elected)
    shown = elected.result()
    signs = troubles(shown, explanation.assessment)
    return replace(explanation, election=shown, troubles=signs)


async def explain(
    client: Client,
    namespace: str,
    name: str,
    now: datetime,
    kinds: KindReader | None = None,
    elected: Awaitable[Election] | None = None,
) -> Explanation:
    """Read everything about one claim and judge it as the controller would. NotFound or
    UnreadableObject if there is no such claim or it cannot be read.

    Args:
        elected: what the controller's Lease shows; it is read where it matters if it is None.
    """
    kinds = kinds or KindReader(client)
    reading = await read_claim(client, kinds, namespace, name)
    claim, pods, reservations = reading.claim, reading.pods, reading.reservations
    recorded = Recorded(claim, pods, reservations)
    watched_since = await recorded.watched_since(client, now, elected)
    holders = [await read_holder(client, kinds, made, pods) for made in reservations]
    ghosts = await recorded.ghosts_seen(client, now, watched_since)
    snapshot = Snapshot(
        now=now,
        namespace=namespace,
        name=name,
        claim=claim,
        reservations=tuple(holder.held for holder in holders),
        pods=pods,
        rules=_rules(recorded),
        memory=recorded.memory(now, watched_since),
        ghosts=ghosts,
        unreadable=reading.unreadable,
    )
    assessment = assess(with_devices(snapshot, reading))
    async with side_by_side() as group:
        owners = group.create_task(OwnerReader(client).read_owners(reading.scanned(now)))
        annotated = await asking(kinds, claim, pods, reading.annotated)
    return Explanation(
        judged(ClaimView(claim, pods, reservations), reading.places, now),
        assessment,
        assessment.reason,
        _obstacles(assessment),
        orphan=judge(owners.result()),
        asking=tuple(asker for asker in annotated if asker.fix or not reservations),
        uncreated={it.held.workload.uid: it.failure for it in holders if it.failure},
        devices=device_notes(claim, assessment.snapshot.slices),
        watched_since=watched_since,
        unknown=not_known(claim, reading.places),
    )


def _rules(recorded: Recorded) -> Rules:
    """The rules by the dialect that the controller detected; without one, nothing depends on it."""
    dialect = recorded_dialect(recorded.reservations) or "hold"
    return Rules(dialect=dialect, refusing_drivers=recorded.refusing_drivers)


def _obstacles(assessment: Assessment) -> tuple[Blocker, ...]:
    """What blocks the release that is under way, or else one that a user asks for."""
    if not assessment.retentions:
        return ()
    under_way = assessment.reason if assessment.reason in PENDING_PODS_GIVE_WAY else None
    reason = under_way or Reason.RELEASE_REQUESTED
    return tuple(blockers(assessment.snapshot, reason, assessment.own))


def effect_of(explanation: Explanation, retention: RetentionDecision) -> str:
    """What a reservation does with the claim, in words."""
    blocker = retention.blocker
    said = find_condition(retention.held.reservation.status.conditions, ConditionType.RESERVED)
    if said is not None and said.reason == Reason.UNCHANGEABLE:
        return f"cannot hold it ({said.reason}): {said.message}"
    is_off = any(it.kind is MatterKind.HOLD_OFF for it in explanation.view.matters)
    if retention.action is Action.HOLD and is_off:
        return f"does not hold it now ({Reason.FROZEN})"
    if retention.action is Action.HOLD and blocker is not None:
        allocated = explanation.view.claim.status.allocation is not None
        verb = "holds" if allocated else "would hold it"
        left = ""
        if allocated and blocker.after is not None:
            end = explanation.assessment.snapshot.now + timedelta(seconds=blocker.after)
            left = f"; {duration(blocker.after)} left, until {end:%H:%M:%S}Z"
        return f"{verb} ({blocker.reason}): {blocker.message}{left}"
    if retention.action is Action.RELEASE and explanation.assessment.held:
        return f"holds it no more ({retention.reason}), and another ClaimReservation does"
    if retention.action is Action.RELEASE:
        return f"releases the claim ({retention.reason})"
    return f"inactive ({retention.reason})"
