"""Remove what is left of claimctl, step by step, until nothing is left or only a user can help.

Every round scans the cluster anew and makes the writes that are possible by then. So the order of
the steps follows from the objects, and a run that was interrupted is continued by the next one:

1. The annotations of workloads go, so that no controller makes another ClaimReservation.
2. The ClaimReservations are deleted. A controller ends their holds by its own rules: the one that
   runs, or one inside this command (``successor``).
3. Holds and tombstones without a ClaimReservation go (``holds``, ``claimctl.commands.orphans``).
4. PodGroups lose claimctl's finalizer: by a controller, or here if the CRDs are gone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from claimctl.cli.errors import CommandFailed
from claimctl.commands.orphans.judge import own_holds
from claimctl.commands.orphans.model import ScannedClaim, WatchTimes
from claimctl.commands.orphans.reclaim import Reclaim
from claimctl.commands.uninstall import judge, sweep
from claimctl.commands.uninstall.holds import without_hold, without_old_tombstones
from claimctl.commands.uninstall.model import Leftover, Removed, Scan, Why
from claimctl.commands.uninstall.scan import scan
from claimctl.commands.uninstall.successor import Successor
from claimctl.commands.uninstall.writes import UninstallWriter
from claimctl.controller.dialect import Detection, DialectProbe
from claimctl.controller.manager import Manager
from claimctl.controller.preflight import missing_rights
from claimctl.controller.settings import Settings
from claimctl.downgrade.expansion import listed_ahead
from claimctl.downgrade.plans import NoSuchNamespace, require_namespaces
from claimctl.kube.client import Client
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.references import is_tombstone
from claimctl.text import listed
from claimctl.wire.resources import NODES, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.traces import BRAKE_GATE, RECORDS

POLL_SECONDS = 2.0
"""Least time between two rounds. A pause is at least as long as the scan before it."""
STEADY_SECONDS = 30.0
"""A run ends if a controller leads and nothing has changed for so long, unless time alone helps."""


_TIMES = WatchTimes()


@dataclass(frozen=True, slots=True)
class UninstallWanted:
    """What one run is asked for. Without namespaces it takes claimctl out of the whole cluster.

    Args:
        settings: of the controller inside the command.
        times: how long claims without a ClaimReservation are watched.
        timeout: seconds after which the run ends.
        believing: whether managedFields prove that a hold is claimctl's.
    """

    settings: Settings
    namespaces: tuple[str, ...] = ()
    times: WatchTimes = _TIMES
    timeout: float = 900.0
    believing: bool = False


@dataclass(slots=True)
class UninstallResult:
    left: tuple[Leftover, ...]
    notes: tuple[str, ...] = ()
    removed: list[Removed] = field(default_factory=list)


class Uninstall:
    """One run of ``claimctl uninstall prepare``.

    Args:
        make_manager: makes a controller with the given settings, on the command's own connection.
        report: called with lines of progress.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        wanted: UninstallWanted,
        make_manager: Callable[[Settings], Manager],
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._wanted = wanted
        self._report = report
        self._make_manager = make_manager
        self._successor = Successor()
        self._writer = UninstallWriter(client, report)
        self._clean = False
        """Whether the scan before showed nothing."""
        self._began = clock.monotonic()
        self._changed = self._began
        self._watched_since: float | None = None
        """When the claims without a ClaimReservation were first seen."""
        self._closed_since: dict[str, float] = {}
        """By claim UID: when no pod listed ahead was seen in the list for the first time."""
        self._seen: object = None
        self._reclaim: asyncio.Task[None] | None = None
        self._detection: Detection | None = None

    async def look(self) -> UninstallResult:
        """Say what is left, and write nothing; NoSuchNamespace if one of its scope is missing."""
        await require_namespaces(self._client, self._wanted.namespaces)
        return self._judge(await self._scan())

    async def run(self) -> UninstallResult:
        """Remove what is left, until nothing is, the time is over, or only a user can help.

        Raises:
            NoSuchNamespace: a namespace of the scope does not exist.
            CommandFailed: no controller runs, and the caller may not do its work.
            KubeError: a request failed.
        """
        await require_namespaces(self._client, self._wanted.namespaces)
        try:
            while True:
                began = self._clock.monotonic()
                seen = await self._scan()
                took = self._clock.monotonic() - began
                result = self._judge(seen)
                if self._is_over(seen, result.left):
                    return result
                await self._act(seen)
                await self._clock.sleep(max(POLL_SECONDS, took))
        finally:
            if self._reclaim is not None:
                self._reclaim.cancel()
                await asyncio.gather(self._reclaim, return_exceptions=True)
            await self._successor.close()

    async def _scan(self) -> Scan:
        """Scan the cluster. The controller of our own ends when the last CRD is gone."""
        wanted = self._wanted
        seen = await scan(
            self._client,
            self._clock,
            wanted.namespaces,
            lease_namespace=wanted.settings.lease_namespace,
            believing=wanted.believing,
        )
        if not seen.served and self._successor.running:
            await self._successor.close()
            return replace(seen, tended=False)
        return replace(seen, tended=seen.tended or self._successor.leading)

    @property
    def _watched(self) -> float:
        """For how many seconds this run has watched the cluster."""
        return self._clock.monotonic() - self._began

    def _judge(self, scan: Scan) -> UninstallResult:
        since = self._watched_since
        freed = self._clock.monotonic() - since if since is not None else 0.0
        left = judge.leftovers(scan, self._wanted.times, freed, self._watched)
        refused = self._writer.refused
        left = tuple(
            structs.replace(leftover, message=f"{leftover.message}; {refused[where]}", after=None)
            if leftover.kind == RESOURCECLAIMS.kind
            and (where := (leftover.namespace, leftover.name)) in refused
            else leftover
            for leftover in left
        )
        return UninstallResult(left, judge.notes(scan), self._writer.removed)

    def _is_over(self, scan: Scan, left: tuple[Leftover, ...]) -> bool:
        """Whether to end. After writes, nothing may be left twice: a controller whose cache is late
        may make another ClaimReservation from an annotation that is gone."""
        now = self._clock.monotonic()
        clean, self._clean = self._clean or not self._writer.removed, not left
        if not left and clean:
            return True
        seen = (
            {(leftover.identity, leftover.message) for leftover in left},
            len(self._writer.removed),
            scan.tended,
        )
        if seen != self._seen:
            self._seen, self._changed = seen, now
            kinds = sorted(Counter(leftover.kind for leftover in left).items())
            counts = ", ".join(f"{count} {kind}" for kind, count in kinds)
            self._report(f"left: {counts}" if left else "nothing is left")
        if now - self._began >= self._wanted.timeout:
            return True
        waits = any(map(judge.passes, left))
        tended = scan.tended or not _for_controller(scan)
        return tended and not waits and now - self._changed >= STEADY_SECONDS

    # -- writing

    async def _act(self, scan: Scan) -> None:
        writer = self._writer
        await writer.for_all(writer.remove_annotations, scan.workloads)
        withdrawn = [
            reservation for reservation in scan.reservations if not reservation.metadata.deleting
        ]
        await writer.for_all(writer.withdraw, withdrawn)
        await writer.for_all(partial(writer.free_of_owner, scan), scan.claims)
        self._successor.check()
        if not scan.tended and scan.served and _for_controller(scan):
            await self._succeed()
        await self._stop_avoiding(scan)
        await self._untaint(scan)
        if judge.runs_without_crds(scan):
            return
        await self._take_out(scan)
        if not scan.served:
            guarded, watched = judge.guarded_groups(scan), self._watched
            may = [it for it in guarded if judge.may_lose_finalizer(it, scan, watched)]
            await writer.for_all(writer.unguard, may)
        self._free_orphans(scan)

    async def _stop_avoiding(self, scan: Scan) -> None:
        """Let the pods go that ``claimctl reschedule`` keeps off nodes."""
        for name in scan.avoiding:
            if await sweep.forget(self._client, name):
                self._writer.note(RECORDS.kind, "", name, "avoidances")
        for pod in scan.braked:
            if await sweep.release(self._client, pod):
                gate = f"scheduling gate {BRAKE_GATE}"
                self._writer.note(PODS.kind, pod.namespace, pod.name, gate)

    async def _untaint(self, scan: Scan) -> None:
        """Remove the taints of ``claimctl reschedule`` from the nodes."""
        for node in dict.fromkeys(node for node, _ in scan.tainted):
            await sweep.untaint(self._client, node)
        for name in scan.tainting if scan.tainted else ():
            await sweep.forget(self._client, name)
        for node, taint in scan.tainted:
            self._writer.note(NODES.kind, "", node, f"taint {taint.key}={taint.value}")

    async def _take_out(self, scan: Scan) -> None:
        """Take holds and tombstones without a ClaimReservation out of claims that stay."""
        loose = []
        for scanned in scan.claims:
            tombstones = any(map(is_tombstone, scanned.claim.status.reserved_for))
            if not scanned.reserved and (tombstones or own_holds(scanned.claim)):
                loose.append(scanned)
        if not loose:
            return
        detected = await self._detect()
        rules = self._wanted.settings.rules(detected.dialect, detected.version)
        writes = []
        for scanned in loose:
            write = without_hold(scanned, scan.groups, rules, self._closed_age(scanned))
            if (write := write or without_old_tombstones(scanned)) is not None:
                writes.append((scanned, write))
        await self._writer.for_all(self._writer.write_list, writes)

    def _closed_age(self, scanned: ScannedClaim) -> float:
        """For how many seconds this run has seen no pod listed ahead in the claim's list."""
        claim, now = scanned.claim, self._clock.monotonic()
        if listed_ahead(claim, Consumers.of(scanned.live.pods).pending):
            self._closed_since.pop(claim.metadata.uid, None)
        return now - self._closed_since.setdefault(claim.metadata.uid, now)

    # -- a controller of our own, and orphans

    async def _succeed(self) -> None:
        """Start a controller of our own, which takes the Lease when that has run out. CommandFailed
        if the caller lacks a right that a controller needs."""
        if self._successor.running:
            return
        settings, detection = self._wanted.settings, await self._detect()
        groups = DIALECTS[detection.dialect].groups
        lacking = await missing_rights(self._client, binding=detection.needs_binding, groups=groups)
        if lacking:
            raise CommandFailed(
                "no controller runs, and you may not do its work: not permitted: "
                f"{listed(lacking, most=len(lacking))}"
            )
        try:
            await require_namespaces(self._client, (settings.lease_namespace,))
        except NoSuchNamespace:
            settings = settings.model_copy(update={"leader_elect": False})
        self._report("no controller runs: this command does its work")
        self._successor.start(self._make_manager(settings))

    async def _detect(self) -> Detection:
        if self._detection is None:
            namespace = self._wanted.settings.lease_namespace
            self._detection = await DialectProbe(self._client, namespace=namespace).detect()
        return self._detection

    def _free_orphans(self, scan: Scan) -> None:
        """Watch the claims that only claimctl's own entries keep, and free them in the end."""
        if self._reclaim is not None and self._reclaim.done():
            task, self._reclaim = self._reclaim, None
            task.result()
        left = judge.leftovers(scan, self._wanted.times)
        freed = any(leftover.reason in _FREED and leftover.after is not None for leftover in left)
        if self._reclaim is None and freed:
            self._watched_since = self._clock.monotonic()
            self._reclaim = asyncio.create_task(self._free(), name="orphans")

    async def _free(self) -> None:
        wanted, client, clock = self._wanted, self._client, self._clock

        async def free(namespace: str) -> None:
            times, causes, believing = wanted.times, judge.CAUSES, wanted.believing
            await Reclaim(client, clock, namespace, times, self._report, causes, believing).run()

        namespaces = self._wanted.namespaces or ("",)
        await in_parallel(free, namespaces, len(namespaces))


_FREED = frozenset((Why.HOLD, Why.TOMBSTONES, *judge.CAUSES))
"""The reasons of claims that the run frees as orphans, once no pod uses them."""


def _for_controller(scan: Scan) -> bool:
    """Whether something is left that only a controller takes away."""
    return scan.served and bool(scan.reservations or judge.guarded_groups(scan))
