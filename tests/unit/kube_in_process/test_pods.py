"""Which containers a pod gets on real nodes."""

from __future__ import annotations

from typing import Any

from kube_in_process.real.nodes.images import IMAGE
from kube_in_process.real.nodes.pods import with_containers

from claimctl_demo.story import objects
from claimctl_demo.story.objects import Workload

ONE = Workload("team", "train", "slice")


def container(body: dict[str, Any]) -> dict[str, Any]:
    (found,) = with_containers(body)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_a_pod_of_a_deployment_runs_for_ever_and_uses_its_claim() -> None:
    found = container(objects.deployment(ONE))
    assert (found["image"], found["imagePullPolicy"], found["args"]) == (IMAGE, "Never", [])
    assert found["resources"]["claims"]


def test_a_pod_of_a_job_ends_after_the_seconds_of_its_annotation() -> None:
    assert container(objects.job(ONE, at_once=1, run_seconds=5.0))["args"] == ["5.0", "0"]


def test_the_manifest_itself_stays_as_it_is() -> None:
    body = objects.deployment(ONE)
    with_containers(body)
    assert body == objects.deployment(ONE)


def test_other_objects_stay_as_they_are() -> None:
    for body in (objects.namespace("team"), objects.claim("team", "slice")):
        assert with_containers(body) == body
