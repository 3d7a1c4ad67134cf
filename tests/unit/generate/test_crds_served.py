"""The CRDs on an API server: what it refuses, fills in and keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.errors import StatusError
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import Actor
from kube_in_process.virtual import run
from msgspec import convert

from claimctl.kube.clock import LoopClock
from claimctl.wire.reservations import ClaimReservationSpec
from generate.crds import custom_resource_definitions

Json = dict[str, Any]
Story = Callable[[ApiFor], object]


def served(story: Story) -> None:
    """Tell a story to a server that has the CRDs."""

    async def tell() -> None:
        cluster = Cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=0), LoopClock())
        await cluster.start()
        api = ApiFor(cluster.api, Actor("admin", ("system:masters",)))
        for definition in custom_resource_definitions():
            api.create("customresourcedefinitions", definition)
        story(api)
        await cluster.stop()

    run(tell())


def reservation(**spec: Any) -> Json:
    return {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "resourceClaimName": "train-slice",
            "workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "train"},
            **spec,
        },
    }


def plan(name: str) -> Json:
    return {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "DowngradePlan",
        "metadata": {"name": name},
        "spec": {},
    }


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(StatusError) as caught:
        act()
    assert caught.value.code == 422
    return caught.value.message


def change(api: ApiFor, spec: Json) -> Json:
    return api.patch("claimreservations", "default", "train", {"spec": spec})


def test_defaults_are_filled_in() -> None:
    def story(api: ApiFor) -> None:
        assert (
            api.create("claimreservations", reservation())["spec"]
            == reservation(
                retentionPolicy="WhileRunning",
                idleTimeoutSeconds=60,
                reallocateTimeoutSeconds=60,
                reallocationPolicy="AfterTimeout",
            )["spec"]
        )

    served(story)


def test_the_word_for_never_survives_what_drops_a_null() -> None:
    """``kubectl apply`` sends no null, and takes it for a field that is removed."""

    def story(api: ApiFor) -> None:
        api.create("claimreservations", reservation(reallocationPolicy="Never"))
        kept = change(api, {"reallocationPolicy": "Never", "reallocateTimeoutSeconds": None})
        assert kept["spec"]["reallocationPolicy"] == "Never"
        assert convert(kept["spec"], ClaimReservationSpec).reallocate_after_seconds is None

    served(story)


def test_null_stays_and_means_never_to_reallocate() -> None:
    def story(api: ApiFor) -> None:
        made = api.create("claimreservations", reservation(reallocateTimeoutSeconds=None))
        assert made["spec"]["reallocateTimeoutSeconds"] is None
        made["spec"]["idleTimeoutSeconds"] = 5
        kept = api.update("claimreservations", made)
        assert kept["spec"]["reallocateTimeoutSeconds"] is None
        assert (
            change(api, {"reallocateTimeoutSeconds": None})["spec"]["reallocateTimeoutSeconds"]
            == 60
        )

    served(story)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"workloadRef": {"apiGroup": "", "kind": "Pod", "name": "a"}},
            "apiGroup must be that of a workload, like apps, batch or jobset.x-k8s.io",
        ),
        (
            {"workloadRef": {"apiGroup": "policy", "kind": "Deployment", "name": "a"}},
            "apiGroup must be that of a workload, like apps, batch or jobset.x-k8s.io",
        ),
        (
            {"workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "a_b"}},
            "spec.workloadRef.name in body should match",
        ),
        ({"resourceClaimName": "A"}, "spec.resourceClaimName in body should match"),
        ({"resourceClaimName": ""}, "spec.resourceClaimName in body should be at least 1 chars"),
        (
            {"resourceClaimTemplateName": "a..b"},
            "spec.resourceClaimTemplateName in body should match",
        ),
        ({"forceDeletedPodGraceSeconds": 10**12}, "should be less than or equal to 315360000"),
        ({"idleTimeoutSeconds": -1}, "should be greater than or equal to 0"),
        ({"retentionPolicy": "Never"}, 'supported values: "WhileRunning"'),
    ],
)
def test_bad_reservations_are_refused_with_what_is_wrong(spec: Json, message: str) -> None:
    def story(api: ApiFor) -> None:
        assert message in refusal(lambda: api.create("claimreservations", reservation(**spec)))

    served(story)


@pytest.mark.parametrize("group_kind", [("apps", "StatefulSet"), ("batch", "Job")])
def test_the_other_kinds_of_workload_are_taken(group_kind: tuple[str, str]) -> None:
    group, kind = group_kind
    workload = {"apiGroup": group, "kind": kind, "name": "train"}
    served(lambda api: api.create("claimreservations", reservation(workloadRef=workload)))


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({}, {"resourceClaimName": "other"}, "resourceClaimName"),
        ({}, {"workloadRef": {"name": "other"}}, "workloadRef"),
        ({}, {"resourceClaimTemplateName": "late"}, "resourceClaimTemplateName"),
        (
            {"resourceClaimTemplateName": "a"},
            {"resourceClaimTemplateName": "b"},
            "resourceClaimTemplateName",
        ),
        (
            {"resourceClaimTemplateName": "a"},
            {"resourceClaimTemplateName": None},
            "resourceClaimTemplateName",
        ),
    ],
)
def test_names_cannot_be_changed(before: Json, after: Json, field: str) -> None:
    def story(api: ApiFor) -> None:
        api.create("claimreservations", reservation(**before))
        assert f"{field} is immutable" in refusal(lambda: change(api, after))
        assert change(api, {"retentionPolicy": "Manual"})["spec"]["retentionPolicy"] == "Manual"

    served(story)


def test_there_is_one_plan() -> None:
    def story(api: ApiFor) -> None:
        message = refusal(lambda: api.create("downgradeplans", plan("other")))
        assert "there is one DowngradePlan at a time, and its name is claimctl" in message
        api.create("downgradeplans", plan("claimctl"))

    served(story)


def test_counts_of_the_status_are_filled_in_with_zero() -> None:
    def story(api: ApiFor) -> None:
        api.create("claimreservations", reservation())
        status = {"status": {"dialect": "hold", "references": {"pods": 2}}}
        written = api.patch("claimreservations", "default", "train", status, "status")
        assert written["status"] == {
            "dialect": "hold",
            "consumers": 0,
            "references": {"pods": 2, "workloads": 0, "limit": 256},
        }

    served(story)
