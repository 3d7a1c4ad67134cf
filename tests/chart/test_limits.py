"""The component limits on a real control plane: each limit, its exceptions, and annotations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claimctl.kube.errors import Forbidden, Invalid
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from claimctl_demo.story.objects import DEPLOYMENT, RESERVATION, Workload
from tests.chart.containers import IMAGE
from tests.chart.sites import ASSETS, ChartSite, site
from tests.e2e.commands import claimctl

pytestmark = [
    pytest.mark.real_time(300),
    pytest.mark.skipif(
        not ASSETS,
        reason="KUBEBUILDER_ASSETS names no programs: the embedded cluster emulates no quotas and "
        "checks no types of expressions",
    ),
]
Json = dict[str, Any]
CONFIG = ("v1", "ConfigMap")
EVENT = ("events.k8s.io/v1", "Event")
QUOTA, COUNT = ("v1", "ResourceQuota"), "count/claimreservations.claimctl.io"
POLICY = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
RBAC = "rbac.authorization.k8s.io"
SYSTEM, USER = "claimctl-system", "alice"
CONTROLLER = {"kind": "ServiceAccount", "name": "claimctl-controller", "namespace": SYSTEM}
LIMITS = {
    "maxIdleTimeoutSeconds": "3600",
    "maxForceDeletedPodGraceSeconds": "600",
    "minForceDeletedPodGraceSeconds": "30",
    "retentionPolicies": "WhileRunning, Persistent",
    "contact": "gpu-admins@example.com",
}


@asynccontextmanager
async def limited(directory: Path, *flags: str) -> AsyncIterator[tuple[ChartSite, DocumentClient]]:
    """A cluster with the component, without limits yet, and a user who may edit in ``ml``."""
    async with site("real", directory) as cluster:
        parts = [part for name in ("crds", "rbac", "limits") for part in ("--component", name)]
        at = ("--kubeconfig", str(cluster.kubeconfig))
        made = await claimctl("install", *parts, *flags, *at)
        assert made.code == 0, made
        await cluster.client.create(objects.namespace("ml"))
        await bind(cluster, "claimctl-edit", {"kind": "User", "name": USER, "apiGroup": RBAC})
        connection = load_connection(str(cluster.kubeconfig), as_user=USER)
        async with HttpTransport(connection) as transport:
            yield cluster, DocumentClient(transport, "tests")


async def bind(cluster: ChartSite, role: str, subject: Json) -> None:
    """Bind a ClusterRole in the namespace ``ml``."""
    await cluster.client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{role}-{subject['name']}", "namespace": "ml"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
    )


async def set_limits(
    cluster: ChartSite, user: DocumentClient, data: Mapping[str, str | None]
) -> None:
    """Set the limits, and wait until the server has them: the limit of the idle time tells."""
    await cluster.client.patch(CONFIG, SYSTEM, "claimctl-limits", {"data": dict(data)})
    most = int(data["maxIdleTimeoutSeconds"] or 0)

    async def in_force() -> bool:
        above = await refused(user, {"idleTimeoutSeconds": most + 1})
        return bool(above) and not await refused(user, {"idleTimeoutSeconds": most})

    await cluster.until(in_force, "the limits are in force")


def reserving(name: str, spec: Json) -> Json:
    body = objects.reservation(Workload("ml", name, "slice"), DEPLOYMENT, **spec)
    body["metadata"]["name"] = name
    return body


async def refused(user: DocumentClient, spec: Json) -> str:
    """Why the user may not create a ClaimReservation with these fields; '' if it is allowed."""
    try:
        await user.create(reserving("any", spec), dry_run=True)
    except Forbidden as error:
        return error.message
    return ""


async def test_each_limit_refuses_what_exceeds_it_and_says_whom_to_ask(tmp_path: Path) -> None:
    async with limited(tmp_path) as (cluster, user):
        assert not await refused(user, {"idleTimeoutSeconds": 9999, "retentionPolicy": "Manual"})
        await set_limits(cluster, user, LIMITS)
        above: tuple[tuple[Json, str], ...] = (
            ({"idleTimeoutSeconds": 3601}, "idleTimeoutSeconds is 3601, and the limit"),
            ({"forceDeletedPodGraceSeconds": 601}, "forceDeletedPodGraceSeconds is 601, and"),
            ({"forceDeletedPodGraceSeconds": 29}, "forceDeletedPodGraceSeconds is 29, and"),
            ({"retentionPolicy": "Manual"}, "Manual, and this cluster allows only WhileRunning, P"),
        )
        for spec, words in above:
            told = await refused(user, spec)
            assert words in told, (spec, told)
            assert told.endswith("ask gpu-admins@example.com")
        within: tuple[Json, ...] = (
            {},
            {"idleTimeoutSeconds": 3600},
            {"forceDeletedPodGraceSeconds": 600},
            {"forceDeletedPodGraceSeconds": None},
            {"retentionPolicy": "Persistent"},
            {"reallocateTimeoutSeconds": None},
        )
        for spec in within:
            assert await refused(user, spec) == "", spec

        exceeding = {"idleTimeoutSeconds": 9999, "retentionPolicy": "Manual"}
        await bind(
            cluster, "claimctl-exceed-limits", {"kind": "User", "name": USER, "apiGroup": RBAC}
        )

        async def exempt() -> bool:
            return not await refused(user, exceeding)

        await cluster.until(exempt, "the user may exceed the limits")
        await cluster.until(lambda: judged(cluster), "the server has checked the expressions")


async def judged(cluster: ChartSite) -> bool:
    """Whether the server has checked the types of the policies. It must find no fault."""
    policies = [
        await cluster.client.get(POLICY, "", name)
        for name in ("claimctl-limits", "claimctl-limits-values")
    ]
    statuses = [policy.get("status", {}) for policy in policies]
    warnings = [status.get("typeChecking", {}).get("expressionWarnings") for status in statuses]
    assert not any(warnings), warnings
    return all(status.get("observedGeneration") for status in statuses)


async def test_without_a_configmap_nothing_is_limited_and_a_wrong_one_is_refused(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path) as (cluster, user):
        await set_limits(cluster, user, {"maxIdleTimeoutSeconds": "100"})
        for wrong, words in (
            ({"maxIdleTimeout": "60"}, "unknown key"),
            ({"maxIdleTimeoutSeconds": "1h"}, "whole numbers of seconds"),
            ({"maxForceDeletedPodGraceSeconds": ""}, "whole numbers of seconds"),
            ({"retentionPolicies": "Never"}, "must name some of"),
        ):
            with pytest.raises(Invalid, match=words):
                await cluster.client.patch(CONFIG, SYSTEM, "claimctl-limits", {"data": wrong})
        again = await claimctl(
            "install", "--component", "limits", "--kubeconfig", str(cluster.kubeconfig)
        )
        assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
        await cluster.client.delete(CONFIG, SYSTEM, "claimctl-limits")

        async def unlimited() -> bool:
            return not await refused(user, {"idleTimeoutSeconds": 9999})

        await cluster.until(unlimited, "nothing is limited")


async def test_an_annotation_is_no_way_around_the_limits_and_its_user_is_told(
    tmp_path: Path,
) -> None:
    async with limited(tmp_path, "--component", "controller", "--image", f"{IMAGE}:1") as (
        cluster,
        user,
    ):
        await set_limits(cluster, user, {**LIMITS, "maxIdleTimeoutSeconds": "100"})
        await cluster.client.create(objects.claim("ml", "slice", cluster.resource_api))
        body = objects.deployment(Workload("ml", "train", "slice", 0, reserve=True))
        body["metadata"]["annotations"]["claimctl.io/idle-timeout-seconds"] = "900"
        await cluster.client.create(body)

        async def told() -> str:
            events = await cluster.client.list(EVENT, "ml")
            notes = [event["note"] for event in events if event["reason"] == "LimitExceeded"]
            return str(notes[-1]) if notes else ""

        async def is_told() -> bool:
            return bool(await told())

        await cluster.until(is_told, "an Event on the Deployment")
        assert await told() == (
            "the annotation asks for more than is allowed: idleTimeoutSeconds is 900, and the "
            "limit of this cluster is 100: set that at most, or ask gpu-admins@example.com"
        )
        assert await cluster.client.list(RESERVATION, "ml") == []
        explained = await claimctl(
            "explain", "deployment/train", "-n", "ml", "--kubeconfig", str(cluster.kubeconfig)
        )
        assert "or ask gpu-admins@example.com" in explained.out

        await bind(cluster, "claimctl-exceed-limits", CONTROLLER)
        annotations = {"claimctl.io/idle-timeout-seconds": "901"}
        change = {"metadata": {"annotations": annotations}, "spec": {"replicas": 1}}
        await cluster.client.patch(DEPLOYMENT, "ml", "train", change)
        await cluster.until(cluster.held, "the claim is held")
        # the right is taken back, and the controller can still end what it has made
        await cluster.client.delete(
            (f"{RBAC}/v1", "RoleBinding"), "ml", "claimctl-exceed-limits-claimctl-controller"
        )
        await cluster.client.delete(DEPLOYMENT, "ml", "train")

        async def gone() -> bool:
            return not await cluster.client.list(RESERVATION, "ml") and not await cluster.listed()

        await cluster.until(gone, "the reservation has ended, and the claim is free")


async def test_a_quota_limits_how_many_reservations_a_namespace_has(tmp_path: Path) -> None:
    """docs/tenancy.md has this quota."""
    async with limited(tmp_path, "--component", "controller", "--image", f"{IMAGE}:1") as (
        cluster,
        user,
    ):
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {COUNT: "1"}}}
        await cluster.client.create({**quota, "metadata": {"name": "claims", "namespace": "ml"}})

        async def counts() -> bool:
            # kube-controller-manager looks for new kinds every 30 s, and counts on a change
            for most in ("2", "1"):
                change = {"spec": {"hard": {COUNT: most}}}
                await cluster.client.patch(QUOTA, "ml", "claims", change)
            status = (await cluster.client.get(QUOTA, "ml", "claims")).get("status", {})
            return bool(status.get("used"))

        await cluster.until(counts, "the quota counts")
        await user.create(reserving("first", {}))

        async def full() -> bool:
            return "exceeded quota" in await refused(user, {})

        await cluster.until(full, "the quota is full")
        await cluster.client.create(
            objects.deployment(Workload("ml", "train", "slice", 1, reserve=True))
        )

        async def told() -> bool:
            events = await cluster.client.list(EVENT, "ml")
            notes = [event["note"] for event in events if event["reason"] == "LimitExceeded"]
            return any("exceeded quota: claims" in note for note in notes)

        await cluster.until(told, "an Event on the Deployment")
