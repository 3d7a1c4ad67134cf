"""Sequences out of the recordings of ``judges/conformance/api``, some of their requests bent."""

from __future__ import annotations

import copy
import json
import re
from functools import lru_cache
from random import Random
from typing import Any

from judges.conformance.replay import Recording, recordings
from judges.differential.mutations import bent
from judges.differential.recorder import Sequence
from judges.differential.templates import Step, plural_of

_LEFT_OUT = ("01", "05b", "10", "11", "14")
"""Recordings about all of a cluster (discovery, definitions, who may do what, a cache that is
emptied), which sequences side by side would disturb, or with components at work."""
_LONGEST = 25
_BENT = 0.25
_NAMESPACE = "the namespace"
_SOME_TIME = "2026-01-02T03:04:05Z"
"""Sent where a recording does not say the time that was sent."""


def recorded_sequence(rng: Random, name: str, version: tuple[int, int]) -> Sequence:
    """The beginning of a recording under another name; one body in four is bent."""
    recording, steps = rng.choice(_parts(version))
    steps_bent = [_bent(rng, step) for step in steps[: rng.randint(4, _LONGEST)]]
    old = str(recording.name).replace(".", "-")
    text = json.dumps(_own_names(steps_bent, old)).replace('"<time>"', f'"{_SOME_TIME}"')
    renamed = json.loads(re.sub(rf"\b{re.escape(old)}(?![0-9])", name, text))
    return Sequence(name, tuple(renamed), True, recording.managed_fields)


def _own_names(steps: list[Step], old: str) -> list[Step]:
    """The steps with the recording's name in the names of all objects without a namespace that they
    create: two sequences of one run can come from the same recording."""
    text = json.dumps(steps)
    for step in steps:
        path, body = step["request"]["path"], step["request"].get("body")
        meta = body.get("metadata") if isinstance(body, dict) else None
        name = meta.get("name") if isinstance(meta, dict) else None
        created = step["request"]["method"] == "POST" and step["response"]["status"] == 201
        alone = created and "/namespaces" not in path and "dryRun" not in path
        if alone and isinstance(name, str) and name and old not in name:
            own = f"{old}-{name}"
            text = text.replace(f'"name": {json.dumps(name)}', f'"name": {json.dumps(own)}')
            text = text.replace(f"{path}/{name}", f"{path}/{own}")
    renamed: list[Step] = json.loads(text)
    return renamed


@lru_cache(maxsize=1)
def _parts(version: tuple[int, int]) -> list[tuple[Recording, list[Step]]]:
    """Every sequence of the recordings of that version, or of all where there is none of it."""
    chosen = [recording for recording in recordings() if not recording.name.startswith(_LEFT_OUT)]
    same = [step for step in chosen if _version(step) == version]
    return [(step, part) for step in same or chosen for part in _split(step)]


def _version(recording: Recording) -> tuple[int, ...]:
    return tuple(map(int, recording.server.removeprefix("v").split(".")[:2]))


def _split(recording: Recording) -> list[list[Step]]:
    parts: list[list[Step]] = []
    for step in _flat(recording.steps):
        if not parts or step.get("note") == _NAMESPACE:
            parts.append([])
        parts[-1].append(step)
    return parts


def _flat(steps: tuple[Step, ...] | list[Step]) -> list[Step]:
    """Without watches, which would be late, and without what looks at other sequences' objects."""
    flat: list[Step] = []
    for step in steps:
        if "during" in step:
            flat += _flat(step["during"])
        elif "request" in step and "response" in step and _own(step["request"]):
            flat.append({key: step[key] for key in ("note", "request", "response") if key in step})
    return flat


def _own(request: dict[str, Any]) -> bool:
    path = request["path"].partition("?")[0]
    everywhere = path.endswith(f"/{plural_of(path)}") and "/namespaces/" not in path
    asks = "watch=true" in request["path"] or "resourceVersion=999" in request["path"]
    return not asks and (request["method"] == "POST" or not everywhere)


def _bent(rng: Random, step: Step) -> Step:
    body = step["request"].get("body")
    if not isinstance(body, dict) or not body or rng.random() >= _BENT:
        return step
    if step.get("note") == _NAMESPACE or body.get("kind") == "Namespace":
        return step
    bent_step = copy.deepcopy(step)
    changed = bent_step["request"]["body"] = bent(rng, body)
    named = isinstance(changed.get("metadata"), dict) and "name" in changed["metadata"]
    if named and "/namespaces/" not in step["request"]["path"]:
        # Other sequences could choose the same new name for an object without a namespace.
        changed["metadata"]["name"] = (body.get("metadata") or {}).get("name")
    return bent_step
