"""The reconciler of PodGroups against a server: what it asks before it lets a group go."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Preset

from claimctl.kube.errors import UnreadableObject
from claimctl.wire.reservations import FINALIZER
from tests.support.builders import CLAIM, NAMESPACE
from tests.support.counting_server import server
from tests.unit.controller.cluster import (
    deleted_group,
    filled,
    finalizers_left,
    groups_server,
    look_at_group,
    member,
)

LIST = f"GET /api/v1/namespaces/{NAMESPACE}/pods"


@pytest.mark.parametrize(
    ("late", "guarded"),
    [
        pytest.param((), False, id="no pod at all"),
        pytest.param((member("late"),), True, id="a pod that the cache does not show yet"),
        pytest.param((member("other", "else"),), False, id="a pod of another group"),
    ],
)
async def test_a_group_is_let_go_only_when_a_live_list_shows_no_pod_of_it(
    late: tuple[dict[str, Any], ...], guarded: bool
) -> None:
    """KCM would take the group out of the claim, deallocate, and the pod be bound all the same."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    deleted_group(made)
    caches = await filled(made)
    for body in late:
        made.create("pods", body)
    await look_at_group(made, caches)
    assert LIST in made.requests
    assert any(FINALIZER in finalizers for finalizers in finalizers_left(made)) == guarded


@pytest.mark.parametrize("bad", ["podgroups", "pods", "claimreservations", "resourceclaims"])
async def test_a_group_is_not_let_go_while_something_about_it_cannot_be_read(bad: str) -> None:
    made, spoilt = groups_server()
    deleted_group(made)
    made.create("pods", member("train"))
    made.admin.delete("pods", NAMESPACE, "train")
    if bad == "pods":
        made.create("pods", member("bad"))
    if bad == "resourceclaims":
        meta = {"name": CLAIM, "namespace": NAMESPACE}
        made.create("resourceclaims", {"metadata": meta, "spec": {"devices": {}}})
    if bad == "claimreservations":
        ref = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": "bad", "namespace": NAMESPACE},
            "spec": {"resourceClaimName": CLAIM, "workloadRef": ref},
        }
        made.create("claimreservations", body)
    name = {"podgroups": "train", "resourceclaims": CLAIM}.get(bad, "bad")
    spoilt.spoil(bad, name)
    await look_at_group(made, await filled(made))
    assert finalizers_left(made) != [[]]


async def test_a_pod_that_only_the_live_list_shows_unreadable_keeps_its_group() -> None:
    made, spoilt = groups_server()
    deleted_group(made)
    caches = await filled(made)
    made.create("pods", member("bad"))
    spoilt.spoil("pods", "bad")
    with pytest.raises(UnreadableObject):
        await look_at_group(made, caches)
    assert finalizers_left(made) != [[]]
