"""Every command that reads the cluster, beside objects in which a stranger wrote extreme values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import ServedCluster, cluster
from tests.support import extremes

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
TRAIN = Workload("ml", "train", "slice", 2)
YEARS = ("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z")
"""The embedded server does not know the year 0."""
COMMANDS = {
    "get": ("get", "-n", "ml"),
    "get -A": ("get", "-A"),
    "explain": ("explain", "slice", "-n", "ml"),
    "explain deploy": ("explain", "deploy/train", "-n", "ml"),
    "tree": ("tree", "-n", "ml"),
    "timeline": ("timeline", "slice", "-n", "ml"),
    "doctor": ("doctor",),
    "doctor orphans": ("doctor", "orphans"),
    "kinds": ("kinds",),
    "uninstall status": ("uninstall", "status"),
}


async def written_by_a_stranger(served: ServedCluster) -> list[int]:
    """The levels of the deep claims that the server took: the embedded one takes fewer than 100.
    More than some 900 are too many for what watches a real server here."""
    user = served.stage.user
    await user.create(objects.namespace("evil"))
    for number, year in enumerate(YEARS):
        spec = {"holderIdentity": "evil", "renewTime": year, "leaseDurationSeconds": 2**31 - 1}
        meta = {"name": f"claimctl-controller{'-x' * number}", "namespace": "evil"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        await user.create({**lease, "spec": {**spec, "acquireTime": year}})
        about = {"kind": "ResourceClaim", "namespace": "ml", "name": "slice"}
        event = {"reason": "Strange", "action": "x", "note": f"year {number}", "type": "Warning"}
        who = {"reportingController": "x", "reportingInstance": "x", "regarding": about}
        await user.create(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"strange-{number}", "namespace": "ml"},
                **({**event, **who, "eventTime": year}),
            }
        )
    path = (await user.served(*served.claims)).at("evil")
    headers = {"content-type": "application/json"}
    taken: list[int] = []
    for levels in (80, 400):
        claim = objects.claim("evil", f"deep-{levels}", served.stage.resource_api)
        opaque = {"driver": "x.example.com", "parameters": {"a": "<deep>"}}
        claim["spec"]["devices"]["config"] = [{"opaque": opaque}]
        body = json.dumps(claim).replace('"<deep>"', extremes.nested(levels)).encode()
        answer = await user.transport.send("POST", path, (), headers, body)
        taken += [levels] * (answer.status == 201)
        await answer.close()
    return taken


async def test_no_command_fails_for_what_a_stranger_wrote(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        made = Acts(served.stage, native=False)
        await made.room("ml")
        await made.held(TRAIN)
        before = {name: await served.claimctl(*line) for name, line in COMMANDS.items()}
        taken = await written_by_a_stranger(served)
        assert taken
        for name, line in COMMANDS.items():
            answer = await served.claimctl(*line)
            told = answer.out + answer.err
            assert "unexpected" not in told, (name, told)
            assert answer.code == before[name].code or name.startswith("doctor"), (name, told)
        listed = await served.claimctl("get", "-A")
        assert "slice" in listed.out
        for levels in taken:
            problem = f"ResourceClaim evil/deep-{levels} cannot be read"
            assert f"deep-{levels} " in listed.out or problem in listed.err
            alone = await served.claimctl("explain", f"deep-{levels}", "-n", "evil")
            assert "unexpected" not in alone.err
            assert f"deep-{levels}" in alone.out + alone.err
        line = (await served.claimctl("timeline", "slice", "-n", "ml", "-o", "json")).document
        assert {line["begin"][:2], line["end"][:2]} == {"20"}
        assert all(mark["at"].startswith("20") for mark in line["marks"])
        # the controller goes on with others
        await made.held(Workload("ml", "other", "piece", 1))
