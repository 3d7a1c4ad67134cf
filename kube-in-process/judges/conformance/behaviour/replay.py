"""Plays the actions of a trace on an embedded cluster whose kubelets do nothing.

Generated names are bound when an action first names a pod: to a pod that is in the same state as
the trace's pod was, since which of several equal pods a controller takes is its own choice.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset, Timings

from .trace import Fields, Name, Trace, TraceAction, TraceEvent
from .watching import events

SETTLED = 0.3
"""Seconds without an action after which the cluster is compared as a whole."""

_GENERATED = re.compile(r"<(?:gen|hash):\d+>")


@dataclass
class TraceReplay:
    """What came of it. ``snapshots`` are the objects before each action that came after a rest."""

    trace: Trace
    events: list[TraceEvent] = field(default_factory=list)
    snapshots: list[tuple[float, dict[Name, Fields]]] = field(default_factory=list)
    messages: list[tuple[str, str]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Names of the trace by the names in the cluster."""
    failures: list[Exception] = field(default_factory=list)


def options(trace: Trace, **more: Any) -> ClusterOptions:
    dialect = Preset.POD_GROUPS if trace.version >= (1, 36) else Preset.PLAIN
    timings = Timings(job_sync=1.0, garbage_collection=0.02)
    return ClusterOptions(
        preset=dialect,
        kubernetes_version=trace.version,
        devices_per_node=0,
        timings=timings,
        **more,
    )


async def play(trace: Trace, **more: Any) -> TraceReplay:
    cluster = Cluster(options(trace, **more), LoopClock(EPOCH))
    cluster.pause("kubelet")
    await cluster.start()
    publish(cluster, "tpu", [f"dev-{index}" for index in range(8)])
    publish(cluster, "one", ["only"])
    player = _Player(cluster, trace)
    try:
        return await player.play()
    finally:
        await cluster.stop()


def publish(cluster: Cluster, name: str, devices: list[str]) -> None:
    driver = f"{name}.example.com"
    expression = f'device.driver == "{driver}"'
    cluster.admin.create(
        "deviceclasses",
        {
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        },
    )
    cluster.admin.create(
        "resourceslices",
        {
            "metadata": {"name": name},
            "spec": {
                "driver": driver,
                "allNodes": True,
                "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": device} for device in devices],
            },
        },
    )


class _Player:
    def __init__(self, cluster: Cluster, trace: Trace) -> None:
        self._cluster = cluster
        self._trace = trace
        self._namespace = trace.actions[0].request["path"].split("/namespaces/")[1].split("/")[0]
        self._transport = cluster.transport()
        self._actual: dict[str, str] = {}
        self._replay = TraceReplay(trace)

    async def play(self) -> TraceReplay:
        self._cluster.admin.create("namespaces", {"metadata": {"name": self._namespace}})
        since = self._cluster.store.revision
        last = -SETTLED
        for action in self._trace.actions:
            await self._until(action.at)
            if action.at - last >= SETTLED:
                self._look(action.at)
            await self._send(action)
            last = action.at
        await self._until(self._trace.end)
        self._look(self._trace.end)
        self._replay.events = list(events(self._cluster.history(since), self._namespace))
        self._replay.names = self._reverse()
        self._replay.messages = list(self._messages())
        self._replay.failures = self._cluster.failures
        return self._replay

    async def _until(self, at: float) -> None:
        await asyncio.sleep(at - asyncio.get_running_loop().time())

    def _look(self, at: float) -> None:
        self._replay.snapshots.append((at, self._state()))

    def _state(self) -> dict[Name, Fields]:
        state: dict[Name, Fields] = {}
        for event in events(self._cluster.history(), self._namespace):
            if event.type == "DELETED":
                state.pop(event.object, None)
            else:
                state[event.object] = event.fields
        return state

    def _messages(self) -> Iterator[tuple[str, str]]:
        for event in self._cluster.admin.list("events", self._namespace):
            regarding = event["involvedObject"]
            shown = f"{regarding['kind']}/{regarding['name']}"
            yield shown, f"{event['reason']}: {event['message']}"

    # Requests

    async def _send(self, action: TraceAction) -> None:
        request = action.request
        path = self._bound(request["path"], action)
        body = request.get("body")
        data = None if body is None else self._bound(json.dumps(body), action).encode()
        plain, _, query = path.partition("?")
        pairs = [tuple(pair.split("=", 1)) for pair in query.split("&") if pair]
        headers = {"content-type": request.get("content-type", "application/json")}
        response = await self._transport.send(
            request["method"],
            plain,
            [(key, value) for key, value in pairs],
            headers,
            data,
        )
        answer = b"".join([part async for part in response.body])
        await response.close()
        assert response.status == action.status, (action.note, answer)

    def _bound(self, text: str, action: TraceAction) -> str:
        """Placeholders replaced by what they stand for here."""
        text = text.replace("<time>", (EPOCH + timedelta(seconds=action.at)).strftime(_TIME))
        text = re.sub(r"[\w.-]+-<[\w:<>-]+>", lambda match: self._name(match.group(), action), text)
        return re.sub(r"<uid:\d+>", lambda _: self._uid(), text)

    def _uid(self) -> str:
        """The only object whose UID traces give is the Deployment."""
        deployments = self._cluster.admin.list("deployments", self._namespace)
        if deployments:
            self._deployment_uid = deployments[0]["metadata"]["uid"]
        return str(self._deployment_uid)

    def _name(self, wanted: str, action: TraceAction) -> str:
        """The pod that stands for ``wanted``; another one if that is not in its state now."""
        states = self._trace.before(action.at)
        state = _situation(states.get(("Pod", wanted), {}))
        actual = self._state()
        bound = self._actual.get(wanted)
        if bound is not None and _situation(actual.get(("Pod", bound), {})) == state:
            return bound
        taken = set(self._actual.values())
        prefix = _GENERATED.split(wanted)[0]
        for kind, name in actual:
            fits = kind == "Pod" and name.startswith(prefix)
            if fits and name not in taken and _situation(actual[kind, name]) == state:
                self._actual[wanted] = name
                return name
        return self._swapped(wanted, state, actual)

    def _swapped(self, wanted: str, state: object, actual: dict[Name, Fields]) -> str:
        for other, name in self._actual.items():
            if _situation(actual.get(("Pod", name), {})) == state:
                if wanted in self._actual:
                    self._actual[other] = self._actual[wanted]
                self._actual[wanted] = name
                return name
        raise AssertionError(f"no pod is in the state of {wanted}: {state}")

    def _reverse(self) -> dict[str, str]:
        return {actual: name for name, actual in self._actual.items()}


_TIME = "%Y-%m-%dT%H:%M:%SZ"


def _situation(fields: Fields) -> object:
    return bool(fields), "deleting" in fields, bool(fields.get("node")), fields.get("phase")
