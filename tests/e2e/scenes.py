"""The beginning that many scenarios share."""

from __future__ import annotations

from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import Stage


async def hold_for_deployment(stage: Stage, replicas: int = 1, **annotations: str) -> None:
    """Create a claim and an annotated Deployment; wait until its pods run and claimctl holds it.

    The claim is ``slice``, the Deployment ``train``, and its ClaimReservation ``train-slice``.
    """
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=replicas, reserve="*", **annotations)
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(replicas)
    await stage.until_condition("Reserved", "True", "Reserved")
