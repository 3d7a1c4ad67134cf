"""What the driver program answers and publishes, by its files, beside a played API server."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.habits.registry import habit, written
from kube_in_process.real.nodes.answers import Answers, DriverRefusal, Node, NodeApi
from kube_in_process.real.nodes.drivers import slice_of

Object = dict[str, Any]
DRIVER, NODE, SLICE = "gpu.example.com", "node-0", "node-0-gpu.example.com-0"
POD = {"resource": "pods", "name": "p1", "uid": "uid-p1"}
HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "work", "uid": "uid-work"}


class AnsweringServer:
    """An API server with one claim, which keeps slices."""

    def __init__(self) -> None:
        results = [{"driver": DRIVER, "pool": NODE, "device": "dev-0", "request": "gpu"}]
        self.claim: Object = {
            "metadata": {"namespace": "team", "name": "c", "uid": "u", "resourceVersion": "7"},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [POD]},
        }
        self.slices: dict[str, Object] = {}
        self.writes = 0

    def answer(self, method: str, path: str, body: object) -> tuple[int, Any]:
        name = path.rpartition("/")[2]
        if method == "GET" and "resourceclaims" in path:
            return 200, copy.deepcopy(self.claim)
        if method == "GET":
            stored = self.slices.get(name)
            return (404, {}) if stored is None else (200, copy.deepcopy(stored))
        assert isinstance(body, dict)
        self.writes += 1
        self.slices[body["metadata"]["name"]] = copy.deepcopy(body)
        return (201 if method == "POST" else 200), body


@dataclass(frozen=True, slots=True)
class PlayedApi(NodeApi):
    server: AnsweringServer = field(default_factory=AnsweringServer)

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return self.server.answer(method, path, body)


class Bench:
    """The answers of a driver, with its files."""

    def __init__(self, home: Path) -> None:
        self.home, self.api = home, PlayedApi("", "", "", "")
        self.server = self.api.server
        self.node = Node(NODE, home / "node" / "kubelet", home / "slice")
        self.node.root.mkdir(parents=True)
        self.boot(1)
        body = slice_of(NODE, DRIVER, ["dev-0", "dev-1"], "resource.k8s.io/v1", {})
        (home / "slice").write_text(json.dumps(body))
        self.answers = self.fresh()

    def fresh(self) -> Answers:
        """Another process of the driver."""
        return Answers(DRIVER, self.api, self.home / "habits", self.home / "checkpoint")

    def boot(self, number: int) -> None:
        (self.node.root.parent / "boot-id").write_text(f"{number}\n")

    def has(self, *names: str, **fields: Any) -> None:
        habits = [habit(name, **fields) for name in names]
        (self.home / "habits").write_text(json.dumps(written(habits)))

    def prepare(self) -> str:
        return self.answers.prepare(self.node, "team", "c", "u")[0]

    def unprepare(self) -> str:
        return self.answers.unprepare(self.node, "team", "c", "u")

    def published(self) -> tuple[int, list[str]]:
        """The generation of the pool, and its devices."""
        self.answers.publish(self.node)
        spec = self.server.slices[SLICE]["spec"]
        return spec["pool"]["generation"], [device["name"] for device in spec["devices"]]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_answer_has_the_devices_of_the_driver_and_the_version_of_the_claim(
    bench: Bench,
) -> None:
    other = {"driver": "other", "pool": NODE, "device": "x", "request": "nic"}
    bench.server.claim["status"]["allocation"]["devices"]["results"].append(other)
    device = {"request_names": ["gpu"], "pool_name": NODE, "device_name": "dev-0"}
    assert bench.answers.prepare(bench.node, "team", "c", "u") == ("", 7, [device])
    assert bench.unprepare() == ""


def test_a_claim_that_is_another_one_or_has_no_device_is_refused(bench: Bench) -> None:
    refused = bench.answers.prepare(bench.node, "team", "c", "older")
    assert refused == ("claim team/c (older) does not exist", 0, [])
    with pytest.raises(DriverRefusal):
        bench.api.claim("team", "c", "older")
    del bench.server.claim["status"]["allocation"]
    assert bench.answers.prepare(bench.node, "team", "c", "u")[:2] == (
        "claim team/c is not allocated",
        7,
    )


def test_habits_are_read_at_each_call(bench: Bench) -> None:
    bench.server.claim["status"]["reservedFor"] = [POD, HOLD]
    assert bench.prepare() == ""
    bench.has("wants-one-pod")
    assert bench.prepare() == "driver only supports one pod per claim, got 2"
    bench.has("wants-one-pod", node="node-1")
    assert bench.prepare() == ""
    bench.has("fails-to-unprepare")
    assert bench.unprepare() == "the device does not answer"


def test_what_is_remembered_outlives_the_process_and_not_a_boot(bench: Bench) -> None:
    bench.has("skips-checkpointed-claims")
    assert bench.prepare() == ""
    bench.answers = bench.fresh()
    bench.answers.begin(bench.node)
    assert bench.prepare() == ""
    bench.boot(2)
    assert "claims in PrepareCompleted state are not supported" in bench.prepare()
    bench.has()
    assert bench.prepare() == ""


@pytest.mark.parametrize("listed", [[POD], [POD, HOLD]])
def test_a_driver_that_counts_entries_forgets_claims_when_it_is_started(
    bench: Bench, listed: list[Object]
) -> None:
    bench.has("restores-claims-with-one-entry")
    bench.prepare()
    bench.server.claim["status"]["reservedFor"] = listed
    bench.answers = bench.fresh()
    bench.answers.begin(bench.node)
    left = json.loads((bench.home / "checkpoint").read_text())[NODE]
    assert list(left) == (["u"] if listed == [POD] else [])


def test_a_pool_of_other_devices_is_a_new_generation_and_taints_are_not(bench: Bench) -> None:
    assert bench.published() == (1, ["dev-0", "dev-1"])
    assert bench.published() == (1, ["dev-0", "dev-1"])
    assert bench.server.writes == 1
    bench.has("taints-no-schedule", devices=("dev-1",))
    assert bench.published() == (1, ["dev-0", "dev-1"])
    assert bench.server.slices[SLICE]["spec"]["devices"][1]["taints"][0]["value"] == "79"
    bench.has("fewer-devices")
    assert bench.published() == (2, ["dev-1"])
    refused = "prepare failed: requested device is not allocatable: dev-0"
    assert bench.prepare() == refused
    bench.has()
    assert bench.published() == (3, ["dev-0", "dev-1"])
    bench.answers = bench.fresh()
    assert bench.published() == (3, ["dev-0", "dev-1"])


def test_a_device_is_hidden_while_it_is_prepared(bench: Bench) -> None:
    bench.has("hides-used-devices")
    bench.prepare()
    assert bench.published() == (1, ["dev-1"])
    bench.answers = bench.fresh()
    assert bench.published() == (1, ["dev-1"])
    assert bench.prepare() == ""
    bench.unprepare()
    assert bench.published() == (1, ["dev-0", "dev-1"])


def test_nothing_is_prepared_on_a_node_that_was_booted(bench: Bench) -> None:
    bench.has("hides-used-devices")
    bench.prepare()
    bench.boot(2)
    assert bench.published() == (1, ["dev-0", "dev-1"])


def test_a_slice_that_is_taken_away_is_published_again(bench: Bench) -> None:
    bench.published()
    bench.server.slices.clear()
    assert bench.published() == (1, ["dev-0", "dev-1"])
