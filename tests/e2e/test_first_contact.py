"""What people met first: a mode that holds nothing, and servers that give nothing to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import claimctl, cluster

pytestmark = [pytest.mark.alone, pytest.mark.real_time(120)]
TRAIN = Workload("ml", "train", "slice", 2, reserve=True)
NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
WHY = "ClaimNotCreatedForWorkload"


async def test_in_native_a_claim_that_cannot_be_held_is_named_everywhere(tmp_path: Path) -> None:
    """The claim is the user's: it was created without ``spec.reservedFor``."""
    async with cluster(NATIVE, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await acts.claim_made("ml", "slice")
        await served.stage.user.create(objects.deployment(TRAIN))
        made = served.stage.world.reservations
        await served.stage.until(
            lambda: any(WHY in str(each.status.conditions) for each in made.values()), WHY
        )
        for name in ("deployment/train", "slice"):
            told = await served.claimctl("explain", name, "-n", "ml")
            assert f"inactive ({WHY})" in told.out
            assert "Nothing" not in told.out
            assert "--replicas=0" not in told.out
            assert "Recreate the claim from a ResourceClaimTemplate" in told.out
        found = await served.claimctl("doctor", "-n", "ml")
        assert found.code == 3
        assert f"not ready ({WHY}): ResourceClaim slice was created without" in found.out


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def other_server() -> Iterator[str]:
    """A web server that is no Kubernetes; its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("command", ["get", "explain slice", "doctor", "release slice"])
async def test_a_server_of_another_kind_is_named(command: str) -> None:
    with other_server() as url:
        answer = await claimctl(*command.split(), "-s", url)
    assert answer.code == 1
    assert len(answer.err.splitlines()) == 1
    assert "not the answer of a Kubernetes API server; look at the server in the" in answer.err
