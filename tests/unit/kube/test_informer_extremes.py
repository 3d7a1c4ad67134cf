"""Every kind that is listed, with values that a stranger may write, in lists and in events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import cycle
from random import Random
from typing import Any

import pytest
from kube_in_process.virtual import run
from msgspec import inspect
from structlog.testing import capture_logs

from claimctl.commands.timeline import shapes
from claimctl.controller.caches import informers
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.workloads import judged
from claimctl.reservation.kinds.rules import Rule
from claimctl.wire import resources
from claimctl.wire.resources import Resource
from claimctl.wire.workloads import CustomWorkload
from tests.support import extremes
from tests.support.wire_server import Reply, Wait, WireServer, stream, thing

KINDS: dict[str, Resource[Any]] = {
    **{it.plural: it for it in vars(resources).values() if isinstance(it, Resource)},
    "timed pods": shapes.TIMED_PODS,
    "timed events": shapes.TIMED_EVENTS,
    "core events": shapes.CORE_EVENTS,
    "rayclusters": Resource("ray.io", "v1", "rayclusters", "RayCluster", CustomWorkload),
}
RULE = Rule(
    *("ray.io", "RayCluster", "rayclusters"),
    idle="self.spec.extreme.all(x, x == 1)",
    ended="self.status.extreme == 'x'",
    pods="self.spec.extreme",
)
CLAIMS = [{"name": "c", "resourceClaimName": "c"}]
SAMPLES: dict[str, dict[str, Any]] = {
    "pods": {"spec": {"resourceClaims": CLAIMS}},
    "replicasets": {"spec": {"template": {"spec": {"resourceClaims": CLAIMS}}}},
}
"""What a kind needs so that the controller keeps the object."""
TYPES = ("ADDED", "MODIFIED")
"""Of events with an object that is there."""
GIVEN = {"name", "namespace", "uid", "resourceVersion"}
"""What the server says of an object, whoever wrote it."""
VALUES = tuple(map(json.dumps, (*extremes.TIMES, *extremes.NUMBERS, *extremes.TEXTS)))
VALUES += (*map(json.dumps, extremes.WRONG), *extremes.NO_NUMBERS, *extremes.NO_TEXTS)
VALUES += tuple(extremes.nested(levels, of) for levels in extremes.DEPTHS for of in "[{")


def fields(shape: inspect.Type) -> Iterator[str]:
    """The names of all fields in a type."""
    match shape:
        case inspect.StructType():
            for field in shape.fields:
                yield field.encode_name
                yield from fields(field.type)
        case inspect.VarTupleType():
            yield from fields(shape.item_type)
        case inspect.Metadata():
            yield from fields(shape.type)
        case inspect.UnionType():
            for type_ in shape.types:
                yield from fields(type_)


def extreme_objects(resource: Resource[Any]) -> dict[str, str]:
    """Objects by their names: a value is in the place of a part, or in all fields of a part."""
    parts = [field.encode_name for field in inspect.type_info(resource.type).fields]  # type: ignore[attr-defined]  # a struct
    names = dict.fromkeys((*fields(inspect.type_info(resource.type)), "extreme"))
    made: dict[str, str] = {}
    for number, value in enumerate(VALUES):
        every = ",".join(f'"{name}":{value}' for name in names if name not in GIVEN)
        for place, part in enumerate(parts):
            name = f"x-{number}-{place}"
            if part != "metadata":
                made[name] = with_part(thing(name, 2), part, value)
            if len(value) < 2000:
                body = thing(name + "-fields", 2)
                given = json.dumps(body["metadata"])[1:-1] if part == "metadata" else '"name":"n"'
                made[name + "-fields"] = with_part(body, part, f"{{{every},{given}}}")
    return made


def with_part(body: dict[str, Any], part: str, text: str) -> str:
    others = "".join(f',"{k}":{json.dumps(v)}' for k, v in body.items() if k != part)
    return f'{{"{part}":{text}{others}}}'


def encoded(text: str) -> bytes:
    """The text, in which the character 0xff stands for that byte."""
    return text.encode().replace("\xff".encode(), b"\xff")


def options_of(resource: Resource[Any]) -> dict[str, Any]:
    """What the controller keeps of a kind and by what it finds it, as its own informers have it."""
    if resource.type is CustomWorkload:
        return {"keep": lambda workload: judged(workload, RULE)}
    noted: dict[Resource[Any], dict[str, Any]] = {}

    class Noting(Informer[Any]):
        def __init__(self, client: Any, of: Resource[Any], clock: Any, **options: Any) -> None:
            noted[of] = options
            super().__init__(client, of, clock, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(informers, "Informer", Noting)
        client = Client(WireServer(), LoopClock())
        informers.Caches(client, LoopClock(), Random(1)).groups.follow()
    return noted.get(resource, {})


def follow(resource: Resource[Any], *script: Reply) -> set[str]:
    """The names that an informer keeps, or cannot read, of what a server sends."""

    async def main() -> set[str]:
        clock = LoopClock()
        client = Client(WireServer(*script), clock, rng=Random(1))
        options = options_of(resource) | {"rng": Random(2)}
        informer: Informer[Any] = Informer(client, resource, clock, **options)
        task = asyncio.create_task(informer.run())
        await asyncio.wait({task}, timeout=5)
        assert not task.done()
        assert informer.trouble is None
        task.cancel()
        kept = {item.metadata.name for item in informer.items()}
        return kept | {unread.name for unread in informer.unread()}

    with capture_logs():
        return run(main())


def missing(plural: str, names: set[str], extreme: dict[str, str]) -> set[str]:
    """Pods and ReplicaSets that name no claim are not kept."""
    return set() if plural in SAMPLES else extreme.keys() - names


@pytest.mark.parametrize("plural", KINDS)
def test_an_extreme_object_in_a_list_is_there_and_its_neighbours_too(plural: str) -> None:
    resource = KINDS[plural]
    first, last = (json.dumps(thing(name, 1, **SAMPLES.get(plural, {}))) for name in "ab")
    extreme = extreme_objects(resource)
    items = ",".join((first, *extreme.values(), last))
    page = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{items}]}}'
    names = follow(resource, Reply(body=[encoded(page)]), stream(Wait()))
    assert {"a", "b"} <= names
    assert not missing(plural, names, extreme)


@pytest.mark.parametrize("plural", KINDS)
def test_an_extreme_object_in_an_event_is_there_and_its_neighbours_too(plural: str) -> None:
    resource = KINDS[plural]
    first, last = (json.dumps(thing(name, 1, **SAMPLES.get(plural, {}))) for name in "ab")
    extreme = extreme_objects(resource)
    lines = [
        encoded(f'{{"type":"{type_}","object":{each}}}\n')
        for type_, each in zip(cycle(TYPES), (first, *extreme.values(), last), strict=False)
    ]
    page = b'{"metadata":{"resourceVersion":"9"},"items":[]}'
    names = follow(resource, Reply(body=[page]), stream(*lines, Wait()))
    assert {"a", "b"} <= names
    assert not missing(plural, names, extreme)
