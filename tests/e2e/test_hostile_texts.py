"""Every command and form of output on a cluster in which every free text is hostile.

Tenants write notes of Events, annotations, owners, parameters and much else. Nothing of that steers
a terminal, and no line begins with it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.http.listener import serve
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.cli.main import load
from claimctl.cli.registry import BY_NAME, entry_of
from claimctl.wire.base import Object
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import CommandAnswer, ServedCluster, claimctl, cluster
from tests.support.hostile import TEXT, Hostile, forged_lines, obeyed

pytestmark = [pytest.mark.alone, pytest.mark.real_time(600)]
OPTIONS = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36), nodes=2)
TRAIN, WEB = Workload("ml", "train", "slice", 2), Workload("ml", "web", "other", 1)
IMAGE = "registry.example.com/claimctl:1"
PRINTS_NO_TEXT_OF_A_CLUSTER = {
    "controller": "its log: tests/unit/telemetry/test_logs.py",
    "demo": "it starts clusters of its own",
    "demo cluster": "it is a cluster of its own",
}
LINES = """
get -n ml
get -A --idle
get nope -n ml
explain pod/{web} -n ml
explain slice -n ml
explain nope -n ml
explain pod/{train} -n ml
explain deploy/train -n ml
explain deploy/web -n ml
explain jobs/nope -n ml
explain reason/Reserved
timeline other -n ml
timeline slice -n ml
timeline nope -n ml
tree -n ml
tree --pods -n ml
tree deploy/train -n ml
tree pod/nope -n ml
doctor
doctor -n ml
doctor driver nope -n ml
doctor driver gpu.example.com -n ml --node node-0 --timeout 2
doctor orphans -n ml
version
reserve deploy/web -n ml --dry-run
reserve deploy/nope -n ml --dry-run
release slice -n ml --dry-run
release slice -n ml --node-is-off node-0
release slice -n ml --cancel
reschedule --policy-config-file {folder}/policy.yaml --dry-run=client
reschedule --policy-config-file {folder}/policy.yaml --dry-run=server
reschedule --policy-config-file {folder}/policy.yaml --why ml/{web}
reschedule --policy-config-file {folder}/policy.yaml --why ml/{train}
install --image {image} --dry-run
completion bash
uninstall verify
uninstall prepare --dry-run
uninstall run --dry-run
upgrade prepare --to 1.37 --dry-run
upgrade status
upgrade restore --dry-run
downgrade status
downgrade prepare -n ml --dry-run
downgrade prepare -n nope --dry-run
downgrade prepare -n ml --timeout 60
downgrade restore --dry-run
downgrade restore --timeout 60
release slice -n ml --wait --timeout 1
reschedule --policy-config-file {folder}/policy.yaml
"""
"""The first line of a command is tried in every form of output."""
SHOW_TEXTS = {
    *("get", "explain", "timeline", "tree", "doctor", "version"),
    *("reschedule", "downgrade prepare", "doctor driver", "doctor orphans"),
}
"""The commands that show texts of tenants, and not only names that the API server checks."""
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "places",
            "pluginConfig": [{"name": "UnplaceablePods", "args": {"stuckSeconds": 1}}],
            "plugins": {
                "deschedule": {"enabled": ["UnplaceablePods"]},
                "balance": {"enabled": ["RemoveDuplicates"]},
            },
        }
    ],
}
SHOWN, NUL = "say\\x1b", "\0"
COLORS = re.compile(r"\x1b\[[\d;]*m")


def forms_of(line: str) -> Iterator[str]:
    """The line in each form of output that its command has, and with colors."""
    entry = entry_of(line.split())
    assert entry is not None, line
    for parameter in load(entry).params:
        if "--output" in parameter.opts:
            known = parameter.help.removeprefix("Output format: ").removesuffix(".")
            yield from (f"{line} -o {form}" for form in known.split(", "))
            yield f"{line} --color always"
            return
    yield line


def every_form() -> Iterator[str]:
    played = set[str]()
    for line in filter(None, LINES.split("\n")):
        entry = entry_of(line.split())
        assert entry is not None, line
        yield from forms_of(line) if entry.name not in played else [line]
        played.add(entry.name)
    assert played | PRINTS_NO_TEXT_OF_A_CLUSTER.keys() == BY_NAME.keys()


@asynccontextmanager
async def hostile(served: ServedCluster, folder: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a server that passes hostile texts on."""
    server = await serve(Hostile(served.embedded.transport()))
    write_kubeconfig(folder / "hostile", Access(server.url))
    try:
        yield folder / "hostile"
    finally:
        await server.close()


def faults(answer: CommandAnswer) -> list[str]:
    """What is wrong with what a line printed."""
    printed = COLORS.sub("", answer.out), answer.err
    signs = set[str]().union(*map(obeyed, printed))
    broken = [word for word in ("Traceback", "unexpected") if word in answer.err]
    return [*map(repr, signs), *(line for text in printed for line in forged_lines(text)), *broken]


async def _scene(served: ServedCluster) -> None:
    """A held claim, an orphan, a pod whose driver fails, one that waits, and news of all."""
    stage, acts = served.stage, Acts(served.stage, native=False, groups=True)
    await acts.room("ml")
    await acts.held(TRAIN, retentionPolicy="Persistent")
    await acts.recorded(TRAIN)
    await served.create_allocated("emptied")
    for node in await acts.node_names():
        failing = {"metadata": {"annotations": {"kube-in-process/prepare-fails": "no driver"}}}
        await stage.user.patch(objects.NODE, "", node, failing)
    await acts.claim_made("ml", WEB.claim)
    await stage.user.create(objects.deployment(WEB))
    await stage.until(lambda: _with_node(acts), "the pod has a node")
    waits = objects.deployment(replace(WEB, name="waits", claim="absent"))
    await stage.user.create(waits)
    for kind, name in ((objects.CLAIM, "slice"), (objects.POD, acts.pods(WEB)[0].metadata.name)):
        about = await stage.user.get(kind, "ml", name)
        await stage.user.create(_event(kind, about["metadata"]))


def _with_node(acts: Acts) -> bool:
    return any(pod.spec.node_name for pod in acts.pods(WEB))


def _event(kind: tuple[str, str], about: Object) -> Object:
    named = {key: about[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"said-of-{about['name']}", "namespace": about["namespace"]},
        "involvedObject": {"apiVersion": kind[0], "kind": kind[1], **named},
        "type": "Warning",
        "reason": "FailedPrepareDynamicResources",
        "message": "somebody says",
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
    }


async def test_no_command_obeys_a_text_of_a_tenant(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await _scene(served)
        (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        acts = Acts(served.stage, native=False, groups=True)
        pods = {it.name: acts.pods(it)[0].metadata.name for it in (TRAIN, WEB)}
        wrong, shown = {}, set[str]()
        async with hostile(served, tmp_path) as kubeconfig:
            for form in every_form():
                line = form.format(**pods, folder=tmp_path, image=IMAGE)
                connection = () if "completion" in line else ("--kubeconfig", str(kubeconfig))
                answer = await claimctl(*line.split(), *connection)
                if found := faults(answer):
                    wrong[line] = found
                if SHOWN in answer.out + answer.err:
                    shown |= {entry.name for entry in [entry_of(line.split())] if entry}
        assert wrong == {}
        assert shown == SHOW_TEXTS


KUBECONFIGS: dict[str, dict[str, Any]] = {
    "context": {"current-context": TEXT},
    "cluster": {"contexts": [{"name": "c", "context": {"cluster": TEXT, "user": "u"}}]},
    "user": {"contexts": [{"name": "c", "context": {"cluster": "c", "user": TEXT}}]},
    "server": {"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:1/{TEXT}"}}]},
    "host": {"clusters": [{"name": "c", "cluster": {"server": f"http://{TEXT}"}}]},
    "namespace": {
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": TEXT}}]
    },
    "token": {"users": [{"name": "u", "user": {"token": TEXT}}]},
    "program": {
        "users": [
            {
                "name": "u",
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": f"/none/{TEXT.replace(NUL, '')}",
                        "installHint": TEXT,
                        "interactiveMode": "Never",
                    }
                },
            }
        ]
    },
}


@pytest.mark.parametrize("part", KUBECONFIGS)
async def test_no_text_of_a_kubeconfig_is_obeyed(part: str, tmp_path: Path) -> None:
    good = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump({**good, **KUBECONFIGS[part]}))
    answer = await claimctl("get", "--kubeconfig", str(tmp_path / "config"))
    assert answer.code in (1, 2)
    assert faults(answer) == []
    assert len(answer.err.splitlines()) <= 2, answer.err
