"""How objects are connected, and how that is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from claimctl.commands.claims.claim_view import views
from claimctl.commands.claims.matters import Matter, MatterKind
from claimctl.commands.tree import drawing
from claimctl.commands.tree.graph import Edge, Graph, around, build, document, merged
from claimctl.wire.claims import Reference
from claimctl.wire.meta import OwnerReference
from claimctl.wire.nodes import Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import claim, deployment_ref, pod_ref, reservation, running
from tests.support.printed import as_json


def owner(kind: str, name: str) -> tuple[OwnerReference, ...]:
    return (OwnerReference(kind=kind, name=name, controller=True),)


def owned(name: str) -> Pod:
    made = running(name)
    meta = replace(made.metadata, owner_references=owner("ReplicaSet", "train-1"))
    return replace(made, metadata=meta)


CHAIN = (*owner("ReplicaSet", "train-1"), *owner("Deployment", "train"))


def graph(pods: int = 2, *reservations: ClaimReservation, held: bool = True) -> Graph:
    made = [owned(f"p{number}") for number in range(pods)]
    entries = [pod_ref(each.metadata.name) for each in made]
    shared = claim(*entries, *([deployment_ref()] if held else []))
    chains = {each.metadata.uid: CHAIN for each in made}
    return build(views([shared], made, reservations), made, chains)


def test_a_workload_its_pods_their_claim_its_device_and_the_node() -> None:
    assert drawing.lines(graph()) == [
        "Deployment/train",
        "├─ makes Pod/p0 (Running)",
        "│  └─ uses ResourceClaim/slice (Held, held by deployments/train)",
        "│     └─ has Device/node-0/gpu-0",
        "│        └─ is on Node/node-0",
        "└─ makes Pod/p1 (Running)",
        "   └─ uses ResourceClaim/slice (Held, held by deployments/train)",
        "      └─ has Device/node-0/gpu-0",
        "         └─ is on Node/node-0",
    ]


class CountedEdges(list[Edge]):
    """A list that counts how often somebody goes through it."""

    reads = 0

    def __iter__(self) -> Iterator[Edge]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("pods", [3, 300])
def test_the_edges_are_not_read_for_each_vertex(pods: int) -> None:
    found = graph(pods=pods)
    found.edges = edges = CountedEdges(found.edges)
    assert around(found, ["ResourceClaim/slice"]).vertices.keys() == found.vertices.keys()
    assert len(found.roots()) == 1
    assert edges.reads == 1


def test_many_pods_that_hang_together_alike_are_one_line() -> None:
    found = drawing.lines(merged(graph(pods=40)))
    assert found[1] == "└─ makes 40 pods: p0, p1, p10 and 37 more (40 Running)"
    assert len(found) == 5


def test_a_workload_without_pods_still_holds_its_claim() -> None:
    assert drawing.lines(graph(pods=0))[:2] == [
        "Deployment/train",
        "└─ holds ResourceClaim/slice (Held, held by deployments/train)",
    ]


def test_a_holder_of_another_group_is_not_taken_for_a_job() -> None:
    theirs = Reference(api_group="batch.volcano.sh", resource="jobs", name="train", uid="x")
    lines = drawing.lines(build(views([claim(theirs)], [], []), []))
    assert lines[0] == "ResourceClaim/slice (Held, held by jobs/train)"


def test_a_reservation_without_a_hold_is_shown() -> None:
    found = drawing.lines(graph(0, reservation(), held=False))
    assert found[:2] == ["Deployment/train", "└─ reserves ResourceClaim/slice (Allocated)"]


def test_pods_without_the_right_to_read_replica_sets() -> None:
    pods = [owned("p0")]
    chains = {pods[0].metadata.uid: owner("ReplicaSet", "train-1")}
    found = drawing.lines(build(views([claim(pod_ref("p0"))], pods, ()), pods, chains))
    assert found[0] == "ReplicaSet/train-1"


def test_only_what_hangs_together_with_an_object() -> None:
    whole = graph()
    part = around(whole, ["Pod/p0"])
    assert "Pod/p1" not in part.vertices
    assert part.vertices.keys() == whole.vertices.keys() - {"Pod/p1"}
    assert around(whole, ["Node/node-0"]).vertices.keys() == whole.vertices.keys()


def test_every_object_and_every_edge_is_in_the_diagrams() -> None:
    found = graph()
    drawn = drawing.mermaid(found)
    assert drawn.splitlines()[0] == "flowchart LR"
    assert len(drawn.splitlines()) == 1 + len(found.vertices) + len(found.edges)
    dotted = drawing.dot(found)
    assert dotted.startswith("digraph claims {")
    assert dotted.endswith("}")
    assert len(dotted.splitlines()) == 3 + len(found.vertices) + len(found.edges)


def test_programs_get_every_pod_and_every_edge() -> None:
    found: dict[str, Any] = as_json(document(graph(pods=40), "train"))
    assert (found["kind"], found["namespace"]) == ("ClaimTree", "train")
    assert sum(each["kind"] == "Pod" for each in found["objects"]) == 40
    assert {"source": "Pod/p0", "target": "ResourceClaim/slice", "label": "uses"} in found["edges"]


def test_a_terminal_without_lines_gets_ascii() -> None:
    assert "\n".join(drawing.lines(graph(), drawing.ASCII)).isascii()


@pytest.mark.parametrize(
    ("spec", "state"), [({}, ""), ({"unschedulable": True}, "cordoned"), (None, "does not exist")]
)
def test_a_node_and_a_claim_say_what_is_wrong_with_them(spec: Any, state: str) -> None:
    node = None if spec is None else convert({"metadata": {"name": "node-0"}, "spec": spec}, Node)
    nodes = {} if node is None else {"node-0": node}
    wrong = Matter(MatterKind.NODE_CORDONED, "node node-0", "it is cordoned")
    (view,) = views([claim(deployment_ref())], (), ())
    matters = (wrong,) if state else ()
    found = build([dataclasses.replace(view, matters=matters)], (), nodes=nodes)
    assert found.vertices["Node/node-0"].note == state
    shown = document(found, "ml")
    if state:
        assert "(Held, held by deployments/train: NodeCordoned)" in drawing.lines(found)[1]
        assert list(drawing.problem_lines(shown.problems, "ml")) == [
            "What is wrong:",
            "  claim slice: node node-0: it is cordoned (NodeCordoned)",
            "  What to do: claimctl explain slice -n ml",
        ]
        around_nothing = around(found, ["Pod/nosuch"])
        assert document(around_nothing, "ml").problems == ()
    else:
        assert (shown.problems, list(drawing.problem_lines((), "ml"))) == ((), [])


def test_of_all_namespaces_each_name_has_its_own_and_nodes_are_shared() -> None:
    claims, pods, found = [], [], []
    for place in ("a", "b"):
        pod = owned("p0")
        pods.append(replace(pod, metadata=replace(pod.metadata, namespace=place, uid=place)))
        made = claim(pod_ref("p0"), deployment_ref())
        claims.append(replace(made, metadata=replace(made.metadata, namespace=place)))
    wrong = (Matter(MatterKind.NODE_CORDONED, "node node-0", "it is cordoned"),)
    found = [dataclasses.replace(view, matters=wrong) for view in views(claims, pods, ())]
    every = build(found, pods, {"a": CHAIN, "b": CHAIN}, everywhere=True)
    assert [key for key in every.vertices if not key.startswith("ResourceClaim")] == [
        *("Pod/a/p0", "Deployment/a/train", "Pod/b/p0", "Deployment/b/train"),
        *("Device/node-0/gpu-0", "Node/node-0"),
    ]
    assert [root.key for root in every.roots()] == ["Deployment/a/train", "Deployment/b/train"]
    steps = list(drawing.problem_lines(document(every, "").problems, ""))
    assert steps[-1] == "  What to do: claimctl explain slice -n b"
