"""Leader election by a Lease.

It only saves work: two leaders would be safe, but would do everything twice. All times are of
this process's monotonic clock. Times that other processes write into the Lease are not compared
with it, because their clocks may be wrong; only a change of the Lease counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from claimctl.telemetry.face import LateLogger, Metric
from claimctl.wire.base import to_plain
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import LEASES
from claimctl.wire.seams import Clock

log = LateLogger(__name__)


class LeadershipLost(Exception):
    """Another process has the Lease, or it could not be renewed; the led work has been ended."""


class Deposed(LeadershipLost):
    """The led work has ended in time and without an error: the candidate may run again."""


class NoNamespace(LeadershipLost):
    """The namespace of the Lease does not exist, so nobody can lead. The text is one line."""


class HistoryLost(LeadershipLost):
    """The Lease has an older version than before: etcd was restored from a backup."""


@dataclass(frozen=True, slots=True)
class LeaderElectionSettings:
    """The name of the Lease, and its times in seconds.

    Attributes:
        lease_duration: how long other candidates wait after a renewal before they take over.
        renew_deadline: after this time without a renewal, the led work is cancelled. The work must
            end before ``lease_duration`` is over.
        retry_period: time between two renewals, or between two attempts to get the Lease.
        request_timeout: the deadline of a single request.
    """

    name: str
    namespace: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    request_timeout: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError("needed: retry_period < renew_deadline < lease_duration")
        if self.lease_duration != int(self.lease_duration):
            raise ValueError("lease_duration: the API knows whole seconds only")


class LeaderElection:
    """One candidate of the election.

    Args:
        identity: unique among all candidates, also earlier ones; for example, the pod's name with a
            random part.
        container: how the identities of processes begin of which only one lives at a time; '' for
            none. So a holder of such an identity has died when this candidate starts, and the
            candidate does not wait until the Lease expires.
        notes: called before each renewal; it returns annotations to write with it.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: LeaderElectionSettings,
        identity: str,
        *,
        container: str = "",
        rng: Random | None = None,
        notes: Callable[[Lease], Mapping[str, str]] | None = None,
    ) -> None:
        self.identity = identity
        self._container = container
        self._notes = notes
        self._client = client.without_retries(settings.request_timeout)
        self._telemetry = client.telemetry
        self._clock = clock
        self._settings = settings
        self._rng = rng or Random()
        self._lease: Lease | None = None
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self._tried_at = 0.0
        self.leading = self._has_led = False
        self._complaint = ""

    @property
    def holder(self) -> str:
        """The identity that held the Lease when it was last read."""
        return (self._lease.spec.holder_identity if self._lease else None) or ""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, then run ``lead`` and return when it returns.

        On every way out, ``lead`` has been cancelled and awaited, and the Lease has been released
        unless it was lost.

        Raises:
            Deposed: the Lease was lost while ``lead`` ran.
            LeadershipLost: the same, and ``lead`` failed or did not stop in time.
            HistoryLost: etcd was restored from a backup, also while another process leads.
            NoNamespace: the namespace of the Lease does not exist, or not any more.
        """
        self._telemetry.gauge(Metric.LEADER, 0)
        while not await self._try():
            jitter = self._rng.uniform(1.0, 1.2)
            await self._clock.sleep(self._settings.retry_period * jitter)
        self.leading = self._has_led = True
        self._telemetry.gauge(Metric.LEADER, 1)
        log.info("leading", lease=self._settings.name, identity=self.identity)
        try:
            await self._lead(lead)
        finally:
            self.leading = False
            self._telemetry.gauge(Metric.LEADER, 0)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew_until_lost(), name="renew lease")
        try:
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # the Lease is renewed until the work has stopped: a slow stop must not lose it
            stopped = await self._stop(work)
            lost = renewing.done()
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            if not lost and stopped:
                await self._release()
            failure = work.exception() if work.done() and not work.cancelled() else None
            if failure is not None:
                log.error("led work failed", lease=self._settings.name, error=repr(failure))
        if lost and (failure is not None or not work.done() or work.cancelled()):
            kind = Deposed if stopped and failure is None else LeadershipLost
            raise kind(self._why_lost(stopped)) from failure
        await work

    async def _stop(self, work: asyncio.Future[None]) -> bool:
        """Cancel the work and wait for its end; False if the Lease expired before."""
        work.cancel()
        while not work.done():
            expires = self._renewed_at + self._settings.lease_duration
            left = expires - self._clock.monotonic()
            if left <= 0:
                log.error("work did not stop before the lease expired", lease=self._settings.name)
                return False
            # a second cancellation of this task must not end the wait for the work
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work}, timeout=left)
        return True

    async def _renew_until_lost(self) -> None:
        """Renew the Lease until another process has it or the deadline has passed."""
        while True:
            deadline = self._renewed_at + self._settings.renew_deadline
            with suppress(TimeoutError):
                now = self._clock.monotonic()
                async with asyncio.timeout(deadline - now):
                    # from the start of the last try, so that a slow answer does not delay this one
                    next_try = self._tried_at + self._settings.retry_period
                    await self._clock.sleep(max(0.0, next_try - now))
                    if await self._try():
                        continue
            if self.holder not in ("", self.identity):
                return
            if self._clock.monotonic() >= deadline:
                return

    def _why_lost(self, stopped: bool) -> str:
        held = self.holder
        why = (
            f"it is held by {held}"
            if held not in ("", self.identity)
            else f"it could not be renewed for {self._settings.renew_deadline:g} s"
        )
        late = "" if stopped else "; the work did not stop in time"
        where = f"{self._settings.namespace}/{self._settings.name}"
        return f"lost the lease {where}: {why}{late}"

    async def _try(self) -> bool:
        """Take or renew the Lease; False if that did not succeed, NoNamespace if it cannot."""
        self._tried_at = self._clock.monotonic()
        try:
            return await self._take_or_renew()
        except (Conflict, AlreadyExists, NotFound):
            # another candidate was faster, or our last write had succeeded after all, or the
            # Lease was deleted
            with suppress(KubeError):
                self._observe(await self._get())
            return False
        except KubeError as error:
            if str(error) != self._complaint:
                # only if it differs from the last one: the log must not fill up
                log.warning("lease request failed", lease=self._settings.name, error=str(error))
            self._complaint = str(error)
            return False

    async def _take_or_renew(self) -> bool:
        if not (self.leading and self.holder == self.identity):
            self._observe(await self._get())
        began = self._clock.monotonic()
        if self._lease is None:
            lease = await self._create()
        elif self.holder == self.identity or self._has_expired() or self._is_inherited():
            lease = await self._update(self._lease)
        else:
            return False
        self._observe(lease)
        self._complaint = ""
        # the time before the request: other candidates saw the renewal no earlier
        self._renewed_at = began
        return True

    def _observe(self, lease: Lease | None) -> None:
        """Remember the Lease, and when it was first seen in this state.

        Raises:
            HistoryLost: the version is lower than before.
        """
        known = self._lease.metadata.resource_version if self._lease else ""
        version = lease.metadata.resource_version if lease else ""
        if lease is None or version != known:
            self._seen_at = self._clock.monotonic()
        self._lease = lease
        if known.isdecimal() and version.isdecimal() and int(version) < int(known):
            where = f"{self._settings.namespace}/{self._settings.name}"
            why = "etcd was restored from a backup; everything has to be listed anew"
            raise HistoryLost(
                f"the lease {where} went back from version {known} to {version}: {why}"
            )

    def _has_expired(self) -> bool:
        """Whether the Lease has no holder, or was not renewed for its duration."""
        if self._lease is None or not self.holder:
            return True
        duration = self._lease.spec.lease_duration_seconds or self._settings.lease_duration
        return self._clock.monotonic() >= self._seen_at + duration

    def _is_inherited(self) -> bool:
        """Whether an earlier process of this container holds the Lease: it is dead."""
        begins = bool(self._container) and self.holder.startswith(self._container)
        return begins and not self._has_led

    async def _get(self) -> Lease | None:
        return await self._client.find(LEASES, self._settings.name, self._settings.namespace)

    async def _create(self) -> Lease:
        body = Lease(
            metadata=ObjectMeta(name=self._settings.name, namespace=self._settings.namespace),
            spec=self._spec(acquired="", transitions=0),
        )
        namespace = self._settings.namespace
        try:
            return await self._client.create(LEASES, body, namespace)
        except NotFound as error:
            raise NoNamespace(
                f"there is no namespace {namespace} for the Lease: create it, or choose another one"
            ) from error

    async def _update(self, lease: Lease) -> Lease:
        transitions = lease.spec.lease_transitions or 0
        if lease.spec.holder_identity != self.identity:
            return await self._patch(lease, self._spec("", transitions + 1))
        spec = self._spec(lease.spec.acquire_time or "", transitions)
        notes = self._notes(lease) if self._notes is not None and self.leading else {}
        return await self._patch(lease, spec, notes)

    async def _release(self) -> None:
        """Release the Lease, so that the next leader need not wait until it expires."""
        lease = self._lease
        if lease is None or self.holder != self.identity:
            return
        ours = self._spec("", lease.spec.lease_transitions or 0)
        released = replace(ours, holder_identity="", lease_duration_seconds=1)
        try:
            self._observe(await self._patch(lease, released))
        except KubeError as error:
            log.warning("lease not released", lease=self._settings.name, error=str(error))

    async def _patch(
        self, lease: Lease, spec: LeaseSpec, annotations: Mapping[str, str] | None = None
    ) -> Lease:
        return await self._client.merge_patch(
            LEASES,
            lease.metadata,
            {
                **({"metadata": {"annotations": dict(annotations)}} if annotations else {}),
                "spec": to_plain(spec),
            },
        )

    def _spec(self, acquired: str, transitions: int) -> LeaseSpec:
        now = micro_time(self._clock.now())
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=int(self._settings.lease_duration),
            acquire_time=acquired or now,
            renew_time=now,
            lease_transitions=transitions,
        )
