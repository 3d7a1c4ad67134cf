"""Which versions a cluster serves, and what the client then speaks."""

from __future__ import annotations

import pytest
from kube_in_process.options import Preset

from claimctl.kube.discovery import Served, use_served_versions
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS
from tests.support.counting_server import server


@pytest.mark.parametrize(
    ("dialect", "version", "served"),
    [
        (Preset.PLAIN, (1, 32), Served(("v1beta1",))),
        (Preset.PLAIN, (1, 33), Served(("v1beta2", "v1beta1"))),
        (Preset.RESERVED_FOR_ANY_POD, (1, 36), Served(("v1",))),
        (Preset.POD_GROUPS, (1, 36), Served(("v1",), ("v1alpha2",))),
        (Preset.POD_GROUPS, (1, 37), Served(("v1",), ("v1beta1",))),
        (Preset.POD_GROUPS, (1, 38), Served(("v1",), ("v1", "v1beta1"))),
        # an unknown group is answered in plain text by 1.37, and by a Status in 1.38
        (Preset.PLAIN, (1, 37), Served(("v1",))),
        (Preset.PLAIN, (1, 38), Served(("v1",))),
    ],
)
async def test_the_preferred_version_of_each_group_is_spoken(
    dialect: Preset, version: tuple[int, int], served: Served
) -> None:
    made = server(dialect, kubernetes_version=version)
    assert await use_served_versions(made.client) == served
    assert made.client.served(RESOURCECLAIMS).version == served.claims[0]
    if served.groups:
        assert made.client.served(PODGROUPS).version == served.groups[0]
    await made.client.list(RESOURCECLAIMS)
    assert made.requests[-1].startswith(f"GET /apis/resource.k8s.io/{served.claims[0]}/")


async def test_the_beta_is_spoken_where_an_alpha_is_served_beside_it() -> None:
    """By the API module of 1.37, v1alpha3 has the same PodGroups."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37), alphas=True)
    assert await use_served_versions(made.client) == Served(("v1",), ("v1beta1", "v1alpha3"))
    assert made.client.served(PODGROUPS).version == "v1beta1"
