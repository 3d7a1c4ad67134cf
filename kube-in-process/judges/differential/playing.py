"""Plays a transcript on the embedded API server and returns the differences."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.http.handler import ADMINISTRATOR, Handler
from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.verbs.reading import Target
from kube_in_process.virtual import run as run_virtually

from judges.conformance.compare import Difference
from judges.conformance.placeholders import Bindings
from judges.conformance.replay import AnsweredStep, Recording, Replay, ReplayStage
from judges.definitions import definitions
from judges.differential.templates import Step

Object = dict[str, Any]
CRASHED = 599
"""The status that stands for an exception in the embedded server."""
_REFUSED = re.compile(r"not emulated")


@dataclass(frozen=True, slots=True)
class Side:
    """The settings of the embedded server."""

    version: tuple[int, int]
    pod_groups: bool

    def server(self) -> Handler:
        """A new server with the same objects as the real one."""
        options = ClusterOptions(
            preset=Preset.POD_GROUPS if self.pod_groups else Preset.PLAIN,
            kubernetes_version=self.version,
            authorization=Authorization.RBAC,
        )
        handler = api_server(options, LoopClock(EPOCH))
        for plural, body in (
            ("namespaces", {"metadata": {"name": "default"}}),
            *(("customresourcedefinitions", definition) for definition in definitions()),
        ):
            handler.api.create(ADMINISTRATOR, Target(handler.api.kinds.named(plural), ""), body)
        return handler


@dataclass(frozen=True, slots=True)
class Played:
    """One step on the embedded server: its answer, and the differences from the real one."""

    step: Step
    answer: AnsweredStep
    differences: tuple[Difference, ...]

    @property
    def refused(self) -> str:
        """What the embedded server refused as not emulated; "" for other answers."""
        message = self.answer.body.get("message") if isinstance(self.answer.body, dict) else ""
        match = isinstance(message, str) and _REFUSED.search(message)
        return str(message) if self.answer.status == 403 and match else ""


@dataclass
class _Watched(Replay):
    """A replay that keeps the answers."""

    played: list[Played] = field(default_factory=list)

    async def _request(self, step: Step, index: str) -> AnsweredStep:
        try:
            return await super()._request(step, index)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"crashed: {error!r} at {Path(where.filename).name} {where.name}"
            return AnsweredStep(CRASHED, {}, {"message": text})

    def _compare(self, step: Step, answered: AnsweredStep, bindings: Bindings) -> list[Difference]:
        differences = super()._compare(step, answered, bindings)
        self.played.append(Played(step, answered, tuple(differences)))
        return differences


def play(handler: Handler, name: str, steps: list[Step], managed_fields: bool) -> list[Played]:
    """The result of every step of a transcript, in the order of the answers."""
    recording = Recording(name, "", tuple(steps), managed_fields)
    replay = _Watched(recording, ReplayStage(handler, handler.api.store.compact))
    run_virtually(replay.run(), limit=100_000)
    return replay.played
