"""Plays a transcript on the embedded API server and says what differs."""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from claimctl.embedded.api_server import api_server
from claimctl.embedded.http.handler import ADMINISTRATOR, Handler
from claimctl.embedded.options import Authorization, ClusterOptions, Dialect
from tests.conformance.compare import Difference
from tests.conformance.placeholders import Bindings
from tests.conformance.replay import Answered, Recording, Replay, Stage
from tests.conformance.stages import LoopTime
from tests.differential.templates import Step
from tests.support.virtual import run as run_virtually

Object = dict[str, Any]
CRASHED = 599
"""Stands for an exception out of the embedded server."""
_REFUSED = re.compile(r"not emulated")
_DEFINITIONS = Path(__file__).parents[2] / "crds"


def definitions() -> list[Object]:
    """The CustomResourceDefinitions of the project."""
    return [json.loads(text) for text in _definition_texts()]


@cache
def _definition_texts() -> tuple[str, ...]:
    """As JSON: every sequence has a server of its own, and YAML takes long to read."""
    paths = sorted(_DEFINITIONS.glob("*.claimctl.io.yaml"))
    return tuple(json.dumps(yaml.safe_load(path.read_text())) for path in paths)


@dataclass(frozen=True, slots=True)
class Side:
    """What the embedded server is to be like."""

    version: tuple[int, int]
    pod_groups: bool

    def server(self) -> Handler:
        """A fresh server that has what the real one was given."""
        options = ClusterOptions(
            dialect=Dialect.PODGROUP if self.pod_groups else Dialect.HOLD,
            kubernetes_version=self.version,
            authorization=Authorization.RBAC,
        )
        handler = api_server(options, LoopTime())
        for plural, body in (
            ("namespaces", {"metadata": {"name": "default"}}),
            *(("customresourcedefinitions", each) for each in definitions()),
        ):
            handler.api.create(ADMINISTRATOR, handler.api.kinds.named(plural), "", body)
        return handler


@dataclass(frozen=True, slots=True)
class Played:
    """One step on the embedded server: what it answered, and what differs from the real one."""

    step: Step
    answer: Answered
    differences: tuple[Difference, ...]

    @property
    def refused(self) -> str:
        """What the embedded server says it does not emulate; empty for any other answer."""
        message = self.answer.body.get("message") if isinstance(self.answer.body, dict) else ""
        found = isinstance(message, str) and _REFUSED.search(message)
        return str(message) if self.answer.status == 501 and found else ""


@dataclass
class _Watched(Replay):
    """Keeps the answers."""

    played: list[Played] = field(default_factory=list)

    async def _request(self, step: Step, index: str) -> Answered:
        try:
            return await super()._request(step, index)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"crashed: {error!r} at {Path(where.filename).name} {where.name}"
            return Answered(CRASHED, {}, {"message": text})

    def _compare(self, step: Step, answered: Answered, bindings: Bindings) -> list[Difference]:
        found = super()._compare(step, answered, bindings)
        self.played.append(Played(step, answered, tuple(found)))
        return found


def play(handler: Handler, name: str, steps: list[Step], managed_fields: bool) -> list[Played]:
    """What every step of a transcript gives on an embedded server, in the order of the answers."""
    recording = Recording(name, "", tuple(steps), managed_fields)
    replay = _Watched(recording, Stage(handler, handler.api.store.compact))
    run_virtually(replay.run(), limit=100_000)
    return replay.played
