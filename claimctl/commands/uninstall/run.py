"""Remove what is left of claimctl, step by step, until nothing is left or only a user can help.

Every round scans the cluster anew and makes the writes that are possible by then. So the order of
the steps follows from the objects, and a run that was interrupted is continued by the next one:

1. The annotations of workloads go, so that no controller makes another ClaimReservation. For the
   same reason the policies for sticky claims are put out of force, and their notes on pods go
   (``claimctl.commands.uninstall.sticky``).
2. The ClaimReservations are deleted. A controller ends their holds and the PodGroups' finalizers by
   its own rules: the one that runs, or one inside this command (``claimctl.cli.successor``).
3. Claims lose owners that are gone, and nodes and pods the traces of ``claimctl reschedule``.
4. If the CRDs are gone although a controller still has work, they are applied for the time of the
   run.
5. Holds and other entries without a ClaimReservation are adopted by one
   (``claimctl.commands.orphans.adoption``).

``Uninstall.run`` is the loop of rounds, and ends it by ``_is_clean`` or ``_is_in_vain``. ``_act``
makes the writes of a round, where a new step gets its place. What is left, and why, is decided in
``claimctl.commands.uninstall.judge``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from claimctl.cli.errors import CommandFailed
from claimctl.cli.successor import Successor
from claimctl.cli.watching import pause
from claimctl.commands.install.components import documents
from claimctl.commands.install.objects import Objects, name_of
from claimctl.commands.orphans.model import Orphan, ScannedClaim
from claimctl.commands.uninstall import judge, sticky, sweep
from claimctl.commands.uninstall.model import Leftover, Removed, Scan
from claimctl.commands.uninstall.scan import scan
from claimctl.commands.uninstall.writes import UninstallWriter
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.downgrade.plans import require_namespaces
from claimctl.installation import policy_bindings
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.reservation.facts.dialects import PodGroupDialect
from claimctl.wire.base import Object
from claimctl.wire.releases import FROM_1_36
from claimctl.wire.resources import CLAIMRESERVATIONS, NODES, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.traces import BRAKE_GATE, RECORDS

LATE_SECONDS = 2.0
"""At the end nothing may be left for so long: the cache of a controller may be late, and that of an
API server."""
STEADY_SECONDS = 30.0
"""A run ends if a controller leads and nothing has changed for so long, unless time alone helps."""
STEADY_FOR_USER_SECONDS = 5.0
"""The same where nothing is left but what a user has to do."""


@dataclass(frozen=True, slots=True)
class UninstallWanted:
    """What one run is asked for. Without namespaces it takes claimctl out of the whole cluster.

    Args:
        settings: of the controller inside the command.
        grace: how long a vanished pod may still be running on a claim without a ClaimReservation,
            in seconds; None as on any claim.
        timeout: seconds after which the run ends.
        believing: whether managedFields prove that a hold is claimctl's.
    """

    settings: Settings
    namespaces: tuple[str, ...] = ()
    grace: float | None = None
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
        objects: writes the CRDs.
        make_manager: makes a controller with the given settings, on the command's own connection.
        report: called with lines of progress.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        wanted: UninstallWanted,
        objects: Objects,
        make_manager: Callable[[Settings], Manager],
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._wanted = wanted
        self._report = report
        self._objects = objects
        self._successor = Successor(client, clock, wanted.settings, make_manager, report)
        self._writer = UninstallWriter(client, report)
        self._applied: list[Object] = []
        """The CRDs that this run has made."""
        self._clean_scans = 0
        """How many scans in a row, up to the last one, showed nothing."""
        self._last_seen: object = None
        """What the last scan showed, and how much was removed by then."""
        self._began = clock.monotonic()
        self._changed = self._began
        """When ``_last_seen`` changed."""

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
                self._clean_scans = 0 if result.left else self._clean_scans + 1
                if self._is_clean():
                    break
                self._note_changes(seen, result.left)
                if self._is_in_vain(seen, result.left):
                    break
                await self._act(seen)
                waited = self._clock.monotonic() - self._changed
                # soon, as API servers learn by their watches that the policy is out of force; and
                # where nothing is left, a second scan has to show it
                soon = seen.bindings or not result.left
                again = max(LATE_SECONDS, took) if soon else pause(waited, took)
                await self._clock.sleep(again)
        finally:
            await self._successor.close()
        for document in self._applied if not result.left else ():
            await self._objects.delete(document)
        return result

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

    def _judge(self, scan: Scan) -> UninstallResult:
        rules = self._wanted.settings.rules(PodGroupDialect.name, FROM_1_36)
        left = judge.leftovers(scan, rules, self._clock.monotonic() - self._began)
        left = tuple(map(self._with_refusal, left))
        return UninstallResult(left, judge.notes(scan), self._writer.removed)

    def _with_refusal(self, leftover: Leftover) -> Leftover:
        """The leftover; if it is a claim whose write was refused, it says so, and time alone does
        not help."""
        refusal = self._writer.refused.get((leftover.namespace, leftover.name))
        if leftover.kind != RESOURCECLAIMS.kind or refusal is None:
            return leftover
        return structs.replace(leftover, message=f"{leftover.message}; {refusal}", after=None)

    def _is_clean(self) -> bool:
        """Whether nothing is left. After writes, two scans in a row have to show it.

        They are ``LATE_SECONDS`` apart: a controller whose cache is late may make another
        ClaimReservation from an annotation that is gone.
        """
        return self._clean_scans >= (2 if self._writer.removed else 1)

    def _note_changes(self, scan: Scan, left: tuple[Leftover, ...]) -> None:
        """Note when what is left has changed, and report it."""
        seen = (
            {(leftover.identity, leftover.message) for leftover in left},
            len(self._writer.removed),
            scan.tended,
        )
        if seen == self._last_seen:
            return
        self._last_seen, self._changed = seen, self._clock.monotonic()
        kinds = sorted(Counter(leftover.kind for leftover in left).items())
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds)
        self._report(f"left: {counts}" if left else "nothing is left")

    def _is_in_vain(self, scan: Scan, left: tuple[Leftover, ...]) -> bool:
        """Whether to end although something may be left: the time is over, or nothing changes any
        more."""
        timed_out = self._clock.monotonic() - self._began >= self._wanted.timeout
        return timed_out or self._is_steady(scan, left)

    def _is_steady(self, scan: Scan, left: tuple[Leftover, ...]) -> bool:
        """Whether nothing has changed for long, although a controller was there where one is
        needed, and time alone does not help."""
        untended = not scan.tended and _needs_controller(scan)
        if untended or any(map(judge.passes, left)):
            return False
        for_user = bool(left) and all(map(judge.is_for_user, left))
        steady = STEADY_FOR_USER_SECONDS if for_user else STEADY_SECONDS
        return self._clock.monotonic() - self._changed >= steady

    # -- writing

    async def _act(self, scan: Scan) -> None:
        """Make the writes that are possible now, by the steps at the head of this file."""
        writer, to_adopt = self._writer, _to_adopt(scan)
        # 1. Nothing makes another ClaimReservation.
        await writer.for_all(writer.remove_annotations, scan.workloads)
        await self._end_sticky(scan)
        # 2. The ClaimReservations go; those that adopt a claim go by step 5.
        adopting = {it.metadata.uid for scanned, _ in to_adopt for it in scanned.adoptions}
        withdrawn = [it for it in sticky.withdrawable(scan) if it.metadata.uid not in adopting]
        await writer.for_all(partial(writer.withdraw, scan), withdrawn)
        # 3. What else claimctl wrote goes from claims, nodes and pods.
        await writer.for_all(partial(writer.free_of_owner, scan), scan.claims)
        await self._stop_avoiding(scan)
        await self._untaint(scan)
        # 4. A controller is there for the rest. It needs the CRDs. One that still runs without them
        # may add holds again: a user has to stop it first.
        if judge.controller_runs_without_crds(scan) or not _needs_controller(scan):
            return
        if not scan.tended and (missing := await self._missing_crds()):
            await self._apply_crds(missing, scan)
            return
        await self._successor.ensure()
        # 5. What nobody answers for gets ClaimReservations.
        grace = self._wanted.grace
        await writer.for_all(lambda wanted: writer.adopt(wanted, grace), to_adopt)

    async def _end_sticky(self, scan: Scan) -> None:
        """Put the policy for sticky claims out of force, and let controllers forget its pods."""
        writer = self._writer
        if scan.bindings and not scan.scoped:
            resource = await policy_bindings(Discovery(self._client))
            assert resource is not None
            await writer.for_all(partial(writer.unbind, resource), scan.bindings)
        await writer.for_all(writer.remove_note, sticky.may_lose_note(scan))

    async def _missing_crds(self) -> list[Object]:
        """The documents of the CRDs that the cluster does not serve."""
        own, defined = CLAIMRESERVATIONS, documents("crds")
        served = await Discovery(self._client).plurals(own.group, own.version)
        return [it for it in defined if it["spec"]["names"]["plural"] not in served]

    async def _apply_crds(self, missing: list[Object], scan: Scan) -> None:
        """Make the CRDs that are missing, so that a controller can do its work.

        Garbage collection deletes whatever a ClaimReservation owns that does not exist. So no claim
        may have such an owner any more, in any namespace. CommandFailed if one has that is none of
        the run's, or if a claim cannot be read.
        """
        if not scan.served and not await self._without_lost_owners():
            return  # the next round finds them without
        for document in missing:
            await self._objects.apply(document, dry_run=False)
            self._applied.append(document)
            self._report(f"{name_of(document)} applied for the time of this run")

    async def _without_lost_owners(self) -> bool:
        """Whether no claim of the cluster is owned by a ClaimReservation."""
        everything = await self._client.list(RESOURCECLAIMS, partial=True)
        scope = self._wanted.namespaces
        if everything.unreadable:
            text = everything.unreadable[0].describe()
            raise CommandFailed(f"the CRDs are gone, and cannot be made again: {text}")
        owned = [it.metadata for it in everything.items if judge.lost_owners(it, ())]
        others = [it for it in owned if scope and it.namespace not in scope]
        if others:
            name = f"{others[0].namespace}/{others[0].name}"
            raise CommandFailed(
                "the CRDs are gone, and with them garbage collection would delete claims of other "
                f"namespaces, such as {name}: run the command without --namespace"
            )
        return not owned

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
        """Remove the taints of ``claimctl reschedule`` from the nodes, and the entries about them
        from its RescheduleRecords."""
        for node in dict.fromkeys(node for node, _ in scan.tainted):
            await sweep.untaint(self._client, node)
        for name in scan.tainting if scan.tainted else ():
            await sweep.forget(self._client, name)
        for node, taint in scan.tainted:
            self._writer.note(NODES.kind, "", node, f"taint {taint.key}={taint.value}")


def _to_adopt(scan: Scan) -> list[tuple[ScannedClaim, Orphan]]:
    """The claims whose entries of claimctl nobody answers for."""
    judged = ((scanned, judge.adoptable(scanned)) for scanned in scan.claims)
    return [(scanned, orphan) for scanned, orphan in judged if orphan is not None]


def _needs_controller(scan: Scan) -> bool:
    """Whether something is left that only a controller takes away."""
    return bool(scan.reservations or judge.guarded_groups(scan) or _to_adopt(scan))
