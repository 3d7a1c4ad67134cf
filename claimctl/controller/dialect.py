"""Detect the dialect of the cluster by requests, and again whenever a watch reconnects.

The served schema does not help: it ignores feature gates, and the API server silently drops a field
whose gate is off. So a field counts as served only if a dry-run create returns it.

An API server that is upgraded, or restarted with other feature gates, breaks every watch. So
polling is not needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from claimctl.kube.client import Client
from claimctl.kube.discovery import Served, server_version, use_served_versions
from claimctl.kube.errors import ApiError, BadRequest, Forbidden, Invalid, KubeError, NotFound
from claimctl.kube.informer import Informer
from claimctl.parallel import wait_for
from claimctl.telemetry.face import LateLogger
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference
from claimctl.wire.releases import FROM_1_36
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS, Resource
from claimctl.wire.seams import Clock

log = LateLogger(__name__)

T = TypeVar("T")
_PROBE = Reference(
    api_group="apps",
    resource="deployments",
    name="claimctl-probe",
    uid="00000000-0000-4000-8000-000000000000",
)
GROUPS_FORBIDDEN = "creating PodGroups is forbidden, so they cannot be used"
"""The reason when the caller's rights do not show whether a PodGroup keeps its claims."""

PAUSE = 1.0
"""Seconds to wait after a watch was opened again, while the server may still be starting."""
RETRY = 15.0
TROUBLE = 5.0
"""Seconds between two checks whether the informer can follow; a check sends no request."""


class DialectUnknown(Exception):
    """The dialect cannot be detected with the rights of this client."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The detected dialect and versions, with the reasons."""

    dialect: str
    version: tuple[int, int]
    reasons: tuple[str, ...]
    groups_version: str = ""
    """The version of scheduling.k8s.io with PodGroups; '' if none is served."""

    @property
    def needs_binding(self) -> bool:
        """Whether a write of a claim's allocation or list needs ``resourceclaims/binding``."""
        return self.version >= FROM_1_36


class DialectProbe:
    """Detects the dialect, as often as needed.

    Args:
        override: ``native``, ``podgroup`` or ``hold`` to set the dialect, ``auto`` to detect it.
        namespace: the namespace of the dry-run create; ``default`` is used if it does not exist.
    """

    def __init__(self, client: Client, *, override: str = "auto", namespace: str = "default"):
        self._client = client
        self._override = override
        self._namespace = namespace

    async def detect(self) -> Detection:
        """Detect the dialect.

        Raises:
            DialectUnknown: creating claims is forbidden.
            KubeError: the API server does not answer.
        """
        version = await server_version(self._client)
        served = await use_served_versions(self._client)
        dialect, reasons = await self._dialect(served)
        spoken = f"server version {version[0]}.{version[1]}"
        return Detection(
            dialect,
            version,
            (*reasons, spoken),
            groups_version=served.groups[0] if served.groups else "",
        )

    async def _dialect(self, served: Served) -> tuple[str, tuple[str, ...]]:
        if self._override != "auto":
            return self._override, (f"set to {self._override} by the operator",)
        if await self._keeps_reserved_for():
            return "native", ("a dry-run create of a ResourceClaim gives spec.reservedFor back",)
        dropped = "a dry-run create of a ResourceClaim drops spec.reservedFor"
        if not served.groups:
            return "hold", (dropped,)
        shares, reason = await self._shares_through_groups()
        return ("podgroup" if shares else "hold"), (dropped, reason)

    async def _shares_through_groups(self) -> tuple[bool, str]:
        """Whether a PodGroup keeps its claims; no if creating PodGroups is forbidden.

        Raises:
            KubeError: a request failed. To count this as no would be wrong until the next watch
                reconnects: releases would not wait for schedulers that see a group.
        """
        try:
            claims = [{"name": "probe", "resourceClaimName": "claimctl-probe"}]
            spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
            made = await self._dry_run(PODGROUPS, spec)
        except Forbidden:
            return False, GROUPS_FORBIDDEN
        except (BadRequest, Invalid, NotFound) as error:
            return False, f"PodGroups cannot be created: {error.message or error}"
        if made.spec.resource_claims:
            return True, "a dry-run create of a PodGroup gives spec.resourceClaims back"
        return False, "a dry-run create of a PodGroup drops spec.resourceClaims"

    async def _keeps_reserved_for(self) -> bool:
        try:
            spec = {"devices": {}, "reservedFor": to_plain(_PROBE)}
            answer = await self._dry_run(RESOURCECLAIMS, spec)
        except Forbidden as error:
            raise DialectUnknown(
                f"cannot find out the reservation mode: {error}; grant create on resourceclaims in "
                f"namespace {self._namespace} or set --reservation-mode"
            ) from error
        except ApiError as error:
            raise DialectUnknown(f"cannot find out the reservation mode: {error}") from error
        return answer.spec.reserved_for == _PROBE

    async def _dry_run(self, resource: Resource[T], spec: dict[str, Any]) -> T:
        async def create(namespace: str) -> T:
            meta = {"generateName": "claimctl-probe-", "namespace": namespace}
            body = {"metadata": meta, "spec": spec}
            return await self._client.create(resource, body, namespace, dry_run=True)

        try:
            return await create(self._namespace)
        except NotFound:
            return await create("default")


class Redetection:
    """Detects the dialect after each reconnection of one informer, and reports a change."""

    def __init__(
        self,
        probe: DialectProbe,
        informer: Informer[Any],
        clock: Clock,
        changed: Callable[[Detection], Awaitable[None]],
    ) -> None:
        self._probe = probe
        self._informer = informer
        self._clock = clock
        self._changed = changed
        self._wake = asyncio.Event()
        self._connected = False
        informer.on_connect(self._on_connect)

    def _on_connect(self) -> None:
        if self._connected:
            self._wake.set()
        self._connected = True

    async def run(self, detection: Detection) -> None:
        """Keep the detection up to date until cancelled."""
        while True:
            await self._wait_for_wake()
            await self._clock.sleep(PAUSE)
            self._wake.clear()
            try:
                latest = await self._probe.detect()
            except (KubeError, DialectUnknown) as error:
                log.warning("cannot look at the reservation mode again", error=str(error))
                await self._clock.sleep(RETRY)
                self._wake.set()
                continue
            if latest != detection:
                log.info("the cluster has changed", dialect=latest.dialect, reasons=latest.reasons)
                await self._changed(latest)
                detection = latest

    async def _wait_for_wake(self) -> None:
        """Wait until a watch was opened again, or cannot be: its version may not be served."""
        while not self._wake.is_set() and not isinstance(self._informer.trouble, NotFound):
            await wait_for(self._wake, TROUBLE)
