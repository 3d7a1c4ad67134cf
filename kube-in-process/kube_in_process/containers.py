"""When containers certainly ran, by the statuses of their pods.

A status tells seconds, and a kubelet reports it late. So what is told here is less than what was:
from the second after a container's start to the second in which it ended. Of a pod whose object
went without a word about its containers, nothing is known but that they had started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kube_in_process.components.objects import key_of, uid
from kube_in_process.components.pods import node_name, pod_claims
from kube_in_process.objects import Object
from kube_in_process.storage.store import Revision

FOREVER = float("inf")
PODS = ("", "pods")
_BLUR = 1.0
"""Seconds by which the time in a status may be earlier than what it tells."""


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """A container that ran on a node.

    Attributes:
        pod: namespace/name.
        claims: the claims of the pod, as namespace/name.
        since: the begin of the certain time, in seconds of the clock on the wall.
        until: the end of the certain time; infinite if it still runs.
    """

    pod: str
    container: str
    node: str
    claims: tuple[str, ...]
    since: float
    until: float = FOREVER


def runs_of(
    history: Iterable[Revision], deaths: Mapping[str, Sequence[float]]
) -> list[ContainerRun]:
    """When the containers of all pods ran.

    Args:
        deaths: by node, when all of its containers were gone at once.
    """
    pods: dict[str, _Statuses] = {}
    for revision in history:
        if (revision.group, revision.plural) == PODS:
            pod = revision.object()
            pods.setdefault(uid(pod), _Statuses()).see(pod, gone=revision.type == "DELETED")
    runs = (_cut(run, deaths.get(run.node, ())) for pod in pods.values() for run in pod.runs())
    return [run for run in runs if run.since < run.until]


def _cut(run: ContainerRun, deaths: Sequence[float]) -> ContainerRun:
    """A run that ends with its node, at the latest."""
    after = [death for death in deaths if death >= run.since - _BLUR]
    return replace(run, until=min(run.until, *after)) if after else run


@dataclass(slots=True)
class _Statuses:
    """The statuses of the containers of one pod, version by version."""

    open: dict[str, ContainerRun] = field(default_factory=dict)
    """By container: what runs, as the last version says."""
    ended: list[ContainerRun] = field(default_factory=list)
    deleted_at: float = FOREVER
    """When the deletion of the pod was asked for."""

    def see(self, pod: Object, *, gone: bool) -> None:
        self._see_deletion(pod)
        for status in _statuses(pod):
            name, state = status["name"], status.get("state") or {}
            ends = [state.get("terminated"), (status.get("lastState") or {}).get("terminated")]
            before = self.open.get(name)
            running = state.get("running")
            if running and before and _time(running["startedAt"]) + _BLUR == before.since:
                continue
            # of a container that was never started, a kubelet tells no times
            times = [end.get("finishedAt") for end in ends if end]
            self._close(name, [_time(time) for time in times if time])
            if running:
                self.open[name] = _run(pod, name, _time(running["startedAt"]))
        if gone:
            for name in list(self.open):
                self._close(name, [])

    def _see_deletion(self, pod: Object) -> None:
        asked = pod["metadata"].get("deletionTimestamp")
        if asked:
            grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
            self.deleted_at = min(self.deleted_at, _time(asked) - grace)

    def _close(self, name: str, ends: Sequence[float]) -> None:
        """A container has ended: at the first of these times that fits, or when nobody knows."""
        run = self.open.pop(name, None)
        if run is not None:
            fitting = [end for end in ends if end >= run.since - _BLUR]
            until = min(fitting, default=run.since)
            self.ended.append(replace(run, until=until))

    def runs(self) -> Iterator[ContainerRun]:
        yield from self.ended
        # nobody knows when the containers of a pod end that is being deleted
        yield from (replace(run, until=self.deleted_at) for run in self.open.values())


def _statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(kind) or ()


def _run(pod: Object, container: str, started: float) -> ContainerRun:
    claims = [pod_claim.claim for pod_claim in pod_claims(pod) if pod_claim.claim]
    space, plain = key_of(pod)
    return ContainerRun(
        f"{space}/{plain}",
        container,
        node_name(pod),
        tuple(f"{space}/{claim}" for claim in claims),
        started + _BLUR,
    )


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
