"""The rights in rbac/ are enough, and each is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.options import ClusterOptions

from claimctl.controller.manager import Manager
from claimctl.controller.preflight import NotReady
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NATIVE, NewStage, Stage
from tests.e2e.rights import strict

RBAC = Path(__file__).parents[2] / "rbac"
_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


async def grant(stage: Stage, *files: str, without: str = "") -> None:
    """Apply the shipped rights, all but the rules for the resource ``without``."""
    for file in files:
        for body in yaml.safe_load_all((RBAC / file).read_text()):
            if body["kind"] in _PLURALS:
                await stage.client.create(
                    _resource(body["kind"]),
                    _less(body, without),
                    body["metadata"].get("namespace", ""),
                )


def _less(body: dict[str, Any], without: str) -> dict[str, Any]:
    if "rules" not in body:
        return body
    kept = [rule for rule in body["rules"] if without not in rule["resources"]]
    return {**body, "rules": kept}


def _resource(kind: str) -> Resource[ObjectHeader]:
    return Resource(
        "rbac.authorization.k8s.io",
        "v1",
        _PLURALS[kind],
        kind,
        ObjectHeader,
        namespaced=kind.startswith("Role"),
    )


@pytest.mark.alone
@pytest.mark.parametrize("options", [NATIVE, HOLD_136], ids=["native", "hold"])
async def test_the_shipped_rights_are_enough(new_stage: NewStage, options: ClusterOptions) -> None:
    async with new_stage(strict(options)) as stage:
        refused: list[str] = []
        await grant(stage, "controller.yaml", "templates.yaml")
        await stage.started(transport=_Listening(stage.connect(), refused))
        await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2))
        body = manifests.reservation(resourceClaimTemplateName="template", idleTimeoutSeconds=1)
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.create(RESOURCECLAIMS, manifests.claim("other"))
        other = manifests.deployment("other", claim="other", replicas=1, reserve="*")
        await stage.create(DEPLOYMENTS, other)
        await stage.until_condition("Reserved", "True", "Reserved", name="train-slice")
        await stage.until_running(3)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.until_released()
        await stage.patch(
            DEPLOYMENTS, "other", {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
        )
        await stage.create(DOWNGRADEPLANS, {"metadata": {"name": DOWNGRADE_PLAN_NAME}})
        await stage.until(lambda: _prepared(stage), "the downgrade is prepared")
        assert refused == []


async def _prepared(stage: Stage) -> bool:
    return (await stage.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)).status.phase == "Prepared"


class _Listening:
    """Takes note of every refused request."""

    def __init__(self, inner: Any, refused: list[str]) -> None:
        self._inner = inner
        self._refused = refused

    async def send(self, method: str, path: str, *rest: Any) -> Any:
        answer = await self._inner.send(method, path, *rest)
        if answer.status in {401, 403, 422}:
            self._refused.append(f"{method} {path}: {answer.status}")
        return answer


@pytest.mark.cluster(strict(HOLD_136))
async def test_what_may_not_be_read_is_named(stage: Stage) -> None:
    await grant(stage, "controller.yaml", without="replicasets")
    manager: Manager = stage.manager()
    task = stage.managers.pop("one")
    with pytest.raises(NotReady) as raised:
        await task
    assert str(raised.value) == (
        "not permitted: list replicasets.apps, watch replicasets.apps: "
        "claimctl install --component rbac"
    )
    assert not manager.healthy


@pytest.mark.cluster(strict(HOLD_136))
@pytest.mark.core
async def test_without_the_binding_right_the_reservation_says_forbidden(stage: Stage) -> None:
    await grant(stage, "controller.yaml", without="resourceclaims/binding")
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_condition("Ready", "False", "Forbidden")
    assert stage.site.account in (await stage.reservations())[0].status.conditions[0].message
