"""Since when each claim is closed to its pods: noted at every version that a watch brings.

Every version of a claim is one watch event, so nothing is missed while the watch goes on. A list
may leave versions out: what a claim shows after one, it counts as seen for the first time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from claimctl.controller.keys import ClaimKey
from claimctl.kube.informer import Change
from claimctl.reservation.reserved_for.references import is_pod, is_pod_group
from claimctl.reservation.snapshot import Openings
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.seams import Clock

KEPT_SECONDS = 3600.0
"""How long it is remembered that a pod was listed; no setting asks for longer."""


@dataclass(slots=True)
class _Seen:
    """Times on this process's own clock: -inf for never, inf for what the claim lists now."""

    uid: str
    version: str
    watched: float
    group: float = -inf
    holder: float = -inf
    delisted: dict[str, float] = field(default_factory=dict)


class OpeningsSeen:
    """What was seen of the lists of all claims in the cache; goes on while another one leads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[ClaimKey, _Seen] = {}

    def observe(self, change: Change[ResourceClaim]) -> None:
        """Note one change in the cache of claims.

        A claim that comes by a watch event has just been made: nobody was listed before.
        """
        key, claim = ClaimKey(change.namespace, change.name), change.new
        if claim is None:
            self._seen.pop(key, None)
            return
        meta, now, seen = claim.metadata, self._clock.monotonic(), self._seen.get(key)
        if seen is None:
            first = -inf if change.old is None else now
            seen = self._seen[key] = _Seen(meta.uid, "", first)
        if change.relist:
            seen.watched = now
        seen.version = meta.resource_version
        before = change.old.status.reserved_for if change.old is not None else ()
        _note(seen, before, claim.status.reserved_for, now)

    def of(self, claim: ResourceClaim) -> Openings:
        """The ages of a claim's openings; of a version that no watch has brought, as at first."""
        meta, now = claim.metadata, self._clock.monotonic()
        seen = self._seen.get(ClaimKey.of(meta))
        if seen is None or (seen.uid, seen.version) != (meta.uid, meta.resource_version):
            return Openings(watched_age=0.0)
        return Openings(
            watched_age=now - seen.watched,
            group_age=max(now - seen.group, 0.0),
            holder_age=max(now - seen.holder, 0.0),
            entry_age={uid: now - at for uid, at in seen.delisted.items()},
        )


def _note(
    seen: _Seen, before: tuple[Reference, ...], after: tuple[Reference, ...], now: float
) -> None:
    """What was listed and is not any more has gone now."""
    for uid in _pods(before) - _pods(after):
        seen.delisted[uid] = now
    for uid in [uid for uid, at in seen.delisted.items() if now - at > KEPT_SECONDS]:
        del seen.delisted[uid]
    seen.group = _last(seen.group, now, listed=any(map(is_pod_group, after)))
    seen.holder = _last(seen.holder, now, listed=not all(map(is_pod, after)))


def _pods(references: tuple[Reference, ...]) -> frozenset[str]:
    return frozenset(each.uid for each in references if is_pod(each))


def _last(last: float, now: float, *, listed: bool) -> float:
    if listed:
        return inf
    return now if last == inf else last
