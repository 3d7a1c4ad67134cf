"""The taints that a run has set, each with the group of pods that it is for."""

from __future__ import annotations

from dataclasses import dataclass, field

from claimctl.kube.errors import Forbidden
from claimctl.wire.traces import MOVING_TAINT
from claimctl_reschedule.plan.plan import Move, TaintStep
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run.groups import MoveGroup, has_landed
from claimctl_reschedule.run.landings import Landings
from claimctl_reschedule.run.records import NoRecord
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.taints import Closed, End, Taints
from claimctl_reschedule.shapes.records import RecordedTaint


@dataclass(slots=True)
class Closing:
    entry: RecordedTaint
    group: MoveGroup


@dataclass(slots=True)
class Closings:
    taints: Taints
    landings: Landings
    signs: Signs
    landing: float
    """Seconds for which replacements are waited for once their node is open again."""
    open: list[Closing] = field(default_factory=list)

    async def close(self, group: MoveGroup) -> bool:
        """Close the nodes of a unit. If one cannot be closed, the group is left: then False."""
        for taint, moves in group.closings:
            closed = (known.entry.node for known in self.open if known.group in group.emptying)
            if taint.node not in closed and not await self._close(group, taint, moves):
                return False
        return True

    async def _close(self, group: MoveGroup, taint: TaintStep, moves: list[Move]) -> bool:
        if taint.pod is not None and await self.taints.is_placed(taint.pod):
            group.leave(Obstacle(Ground.CHANGED, f"{taint.pod} needs no room any more"))
            return False
        pod = taint.pod or (moves or group.moves)[0].pod
        try:
            await self.landings.pods.follow(pod.namespace)
            victims = [move.pod.uid for move in moves]
            closed, entry = await self.taints.close(taint, pod, victims)
        except (NoRecord, Forbidden) as error:
            group.leave(Obstacle(Ground.FAILED, f"the node cannot be closed: {error}"))
            return False
        if closed in (Closed.OURS, Closed.FOREIGN):
            self.open.append(Closing(entry, group))
            self.signs.tainted(entry, closed)
            return True
        if closed is Closed.CHANGED and taint is not group.taint:
            return True  # an autoscaler has taken the node
        detail = f"node {taint.node} is gone" if closed is Closed.CHANGED else "it is in use"
        group.leave(Obstacle(Ground.CHANGED, f"the node cannot be closed: {detail}"))
        return False

    def delay(self, group: MoveGroup) -> bool:
        """Whether a taint of this run would keep a replacement from its expected node.

        A move waits until the node it goes to is open again. The taint on a node waits for the
        replacements that are on their way there. Critical pods tolerate each other's taints, so
        that one of them might take the room of another: they come one after the other.
        """
        if group.rescues and any(closing.group.rescues for closing in self.open):
            return True
        if group.targets & {closing.entry.node for closing in self.open}:
            return True
        closes = group.taint.node if group.taint is not None else ""
        return bool(closes) and any(
            flight.move.destination == closes for flight in self.landings.open
        )

    async def renew(self) -> None:
        await self.taints.renew([closing.entry for closing in self.open])

    async def lift_what_is_done(self, *, polls: bool) -> None:
        """Remove the taints that have met their purpose, or whose time is over. ``polls``: ask the
        server also for what no watch shows."""
        for closing in list(self.open):
            end = await self._end(closing, polls=polls)
            if end is not None:
                await self._lift(closing, end)
                # the node is open again: a replacement that finds no place now waits for others
                uids = (move.pod.uid for move in closing.group.moves)
                self.landings.hurry(uids, self.landing)
                self.signs.untainted(closing.entry, end)

    async def _end(self, closing: Closing, *, polls: bool) -> End | None:
        entry, group = closing.entry, closing.group
        if entry.key != MOVING_TAINT:
            critical = self.landings.pods.get(entry.pod_uid, entry.pod_namespace)
            waits = critical is not None and not critical.spec.node_name
            return None if waits and not polls else await self.taints.ended(entry)
        groups = group.emptying or [group]
        landed = all(has_landed(leaving, self.landings) for leaving in groups)
        return End.MET if landed else None

    async def lift_all(self) -> None:
        for closing in list(self.open):
            await self._lift(closing, End.MET)

    async def _lift(self, closing: Closing, end: End) -> None:
        await self.taints.lift(closing.entry, end)
        self.open.remove(closing)
