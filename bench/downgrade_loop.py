"""A script without claimctl's decisions: one GET, one LIST and one PATCH for each claim.

``python -m bench.downgrade_loop KUBECONFIG CLAIMS``
"""

from __future__ import annotations

import asyncio
import sys

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.parallel import in_parallel
from claimctl.wire.resources import PODS, RESOURCECLAIMS

AT_ONCE = 8
"""As many as downgrade prepare writes at a time."""


async def main(kubeconfig: str, claims: int) -> None:
    async with HttpTransport(load_connection(kubeconfig)) as transport:
        client = Client(transport, LoopClock())

        async def one(number: int) -> None:
            await list_pods(client, number)

        await in_parallel(one, range(claims), AT_ONCE)


async def list_pods(client: Client, number: int) -> None:
    """Replace the list of one claim by the pods of its Deployment."""
    claim = await client.get(RESOURCECLAIMS, f"slice-{number}", "work")
    pods = await client.list(PODS, "work", label_selector=f"app=train-{number}")
    listed = [
        {"resource": "pods", "name": each.metadata.name, "uid": each.metadata.uid}
        for each in pods.items
    ]
    await client.merge_patch(
        RESOURCECLAIMS, claim.metadata, {"status": {"reservedFor": listed}}, subresource="status"
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
