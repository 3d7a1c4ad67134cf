"""Which reservation API the cluster speaks, found out by what it does.

A schema proves nothing: it ignores feature gates, and a field whose gate is off is dropped in
silence. So the field counts as served only if a dry-run create gives it back.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.kube.errors import ApiError, Forbidden, NotFound
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS

MIXED_LISTS_CLEANED_FROM = (1, 36)
"""From here on KCM cleans pods beside references it does not know."""

_PROBE = Reference(
    api_group="apps",
    resource="deployments",
    name="claimctl-probe",
    uid="00000000-0000-4000-8000-000000000000",
)


class DialectUnknown(Exception):
    """The cluster does not let us find out which dialect it speaks."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found out, and from what."""

    dialect: str
    version: tuple[int, int]
    reasons: tuple[str, ...]

    @property
    def kcm_cleans_mixed_lists(self) -> bool:
        return self.version >= MIXED_LISTS_CLEANED_FROM


class DialectProbe:
    """Asks the API server; can be asked again at any time.

    Args:
        override: ``native`` or ``hold`` to believe the operator, ``auto`` to look.
        namespace: where claims may be created (nothing is, it is a dry run); ``default`` stands
            in for one that does not exist.
    """

    def __init__(self, client: Client, *, override: str = "auto", namespace: str = "default"):
        self._client = client
        self._override = override
        self._namespace = namespace

    async def detect(self) -> Detection:
        """Find out the dialect.

        Raises:
            DialectUnknown: creating claims is forbidden, so the question stays open.
            KubeError: the API server does not answer.
        """
        version = await self._version()
        spoken = f"server version {version[0]}.{version[1]}"
        if self._override != "auto":
            reason = f"set to {self._override} by the operator"
            return Detection(self._override, version, (reason, spoken))
        kept = await self._keeps_reserved_for()
        reason = (
            "a dry-run create of a ResourceClaim gives spec.reservedFor back"
            if kept
            else "a dry-run create of a ResourceClaim drops spec.reservedFor"
        )
        return Detection("native" if kept else "hold", version, (reason, spoken))

    async def _version(self) -> tuple[int, int]:
        return parse_version(await self._client.get_raw("/version"))

    async def _keeps_reserved_for(self) -> bool:
        try:
            try:
                answer = await self._dry_run(self._namespace)
            except NotFound:
                answer = await self._dry_run("default")
        except Forbidden as error:
            raise DialectUnknown(
                f"cannot find out the dialect: {error}; grant create on resourceclaims in "
                f"namespace {self._namespace} or set --dialect"
            ) from error
        except ApiError as error:
            raise DialectUnknown(f"cannot find out the dialect: {error}") from error
        return answer.spec.reserved_for == _PROBE

    async def _dry_run(self, namespace: str) -> ResourceClaim:
        body = {
            "metadata": {"generateName": "claimctl-probe-", "namespace": namespace},
            "spec": {"devices": {}, "reservedFor": to_plain(_PROBE)},
        }
        return await self._client.create(RESOURCECLAIMS, body, namespace, dry_run=True)


def parse_version(body: bytes) -> tuple[int, int]:
    """(major, minor) of a ``/version`` answer; providers append signs to the minor ("36+")."""
    try:
        answer = json.loads(body)
        return _number(answer["major"]), _number(answer["minor"])
    except (ValueError, KeyError, TypeError):
        return (0, 0)


def _number(text: str) -> int:
    match = re.match(r"\d+", text)
    if match is None:
        raise ValueError(text)
    return int(match.group())
