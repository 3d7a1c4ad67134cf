"""docs/tenancy.md: what users of one namespace can do, and what they cannot reach."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.storage.store import Revision

from claimctl.kube.errors import Forbidden
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    NAMESPACES,
    RESOURCECLAIMS,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE
from tests.e2e.office import Office, office

pytestmark = pytest.mark.real_time(120)
OTHER = "other"


def reserving(name: str, claim: str, workload: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    ref = {"apiGroup": "apps", "kind": "Deployment", "name": workload}
    spec = {"resourceClaimName": claim, "workloadRef": ref}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def test_viewers_read_and_editors_write_reservations_of_their_namespace(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as made:
        for command in (("get",), ("explain", "slice"), ("timeline", "slice"), ("tree",)):
            shown = await made.ask("view", *command, "-n", NAMESPACE)
            assert (shown.code, "slice" in shown.out) == (0, True), shown
        with pytest.raises(Forbidden):
            await made.client("view").create(
                CLAIMRESERVATIONS, reserving("r", "slice", "train"), NAMESPACE
            )
        editor = made.client("edit")
        await editor.create(CLAIMRESERVATIONS, reserving("r", "slice", "train"), NAMESPACE)
        await editor.delete(CLAIMRESERVATIONS, "r", NAMESPACE)


async def test_only_the_controller_writes_a_status(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        claim = await made.stage.claim()
        (held,) = await made.stage.reservations()
        empty = {"status": {"reservedFor": None, "consumers": 0}}
        targets: tuple[tuple[Resource[Any], Any], ...] = (
            (RESOURCECLAIMS, claim),
            (CLAIMRESERVATIONS, held),
        )
        for user, (resource, seen) in product(("view", "edit", "nobody"), targets):
            meta = seen.metadata
            with pytest.raises(Forbidden):
                await made.client(user).merge_patch(resource, meta, empty, subresource="status")


async def test_a_reservation_cannot_reach_another_namespace(tmp_path: Path) -> None:
    """An editor of one namespace reserves a claim that only the other namespace has."""
    async with office(tmp_path) as made:
        stage, editor = made.stage, made.client("edit")
        await stage.client.create(NAMESPACES, {"metadata": {"name": OTHER}})
        theirs = {**manifests.claim("theirs"), "metadata": {"name": "theirs", "namespace": OTHER}}
        await stage.client.create(RESOURCECLAIMS, theirs, OTHER)
        with pytest.raises(Forbidden):
            await editor.create(CLAIMRESERVATIONS, reserving("r", "theirs", "train", OTHER), OTHER)
        await editor.create(CLAIMRESERVATIONS, reserving("r", "theirs", "train"), NAMESPACE)
        await until_reason(made, "r", "ClaimNotFound", "ClaimNotNamedByPodTemplate")
        assert written(made, OTHER, "theirs") == []


async def test_a_workload_holds_only_claims_that_its_pods_name(tmp_path: Path) -> None:
    """The claim of another workload of the same namespace."""
    async with office(tmp_path) as made:
        stage, editor = made.stage, made.client("edit")
        await stage.create(RESOURCECLAIMS, manifests.claim("alone"))
        await stage.create(DEPLOYMENTS, manifests.deployment("eval", claim="alone"))
        await stage.until_running(2)
        before = len(written(made, NAMESPACE, "alone"))
        await editor.create(CLAIMRESERVATIONS, reserving("r", "alone", "train"), NAMESPACE)
        await until_reason(made, "r", "ClaimNotNamedByPodTemplate")
        await stage.patch(DEPLOYMENTS, "eval", {"spec": {"replicas": 0}})
        await stage.until_released("alone")
        entries = [
            each
            for revision in written(made, NAMESPACE, "alone")[before:]
            for each in revision.object()["status"].get("reservedFor") or ()
        ]
        assert [each for each in entries if each["resource"] == "deployments"] == []


def written(made: Office, namespace: str, claim: str) -> list[Revision]:
    """What the controller wrote to a claim."""
    return [
        each
        for each in made.stage.embedded.history()
        if (each.plural, each.namespace, each.name) == ("resourceclaims", namespace, claim)
        and each.actor == CONTROLLER_USER
    ]


async def until_reason(made: Office, name: str, *reasons: str) -> None:
    """Wait until the condition Reserved of a ClaimReservation has one of these reasons."""

    async def told() -> bool:
        found: ClaimReservation = await made.stage.client.get(CLAIMRESERVATIONS, name, NAMESPACE)
        return any(
            each.type == "Reserved" and each.reason in reasons for each in found.status.conditions
        )

    await made.stage.until(told, f"ClaimReservation {name} reports one of {reasons}")
