"""The stock kubectl against ``claimctl demo cluster``; each is a process."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")
WATCH_TRIES = 60
TIMEOUT_SECONDS = 60
TRAIN = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: slice}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: train, labels: {app: train}}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/train:1", resources: {claims: [{name: gpu}]}}
      resourceClaims: [{name: gpu, resourceClaimName: slice}]
"""
TOLERANT = """
apiVersion: v1
kind: Pod
metadata: {name: tolerant}
spec:
  containers: [{name: main, image: "registry.example.com/tolerant:1"}]
  tolerations: [{key: example.com/gpu, operator: Exists, effect: NoSchedule}]
"""
SET_AND_JOB = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: shard}
spec:
  serviceName: shard
  replicas: 2
  selector: {matchLabels: {app: shard}}
  template:
    metadata: {labels: {app: shard}}
    spec: {containers: [{name: main, image: "registry.example.com/shard:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/once:1"}]
"""


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig, in one namespace."""

    kubeconfig: Path
    namespace: str = "default"

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; the test fails when kubectl does."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        assert KUBECTL is not None
        cache = f"--cache-dir={self.kubeconfig.parent / 'cache'}"
        where = ["--kubeconfig", str(self.kubeconfig), cache, "-n", self.namespace]
        return subprocess.run(
            [KUBECTL, *where, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def object(self, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self("get", "-o", "json", *arguments)))

    def within(self, namespace: str) -> Kubectl:
        """The same in a new namespace."""
        self("create", "namespace", namespace)
        return Kubectl(self.kubeconfig, namespace)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "claimctl", "demo", "cluster", *arguments]


@contextmanager
def serving(kubeconfig: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A served cluster; its first line of output says that the kubeconfig is there."""
    process = subprocess.Popen(
        command("--kubeconfig", str(kubeconfig), *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("cluster at "), line + process.stdout.read()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    path = tmp_path_factory.mktemp("native") / "kubeconfig"
    with serving(path, "--nodes", "2", "--devices", "2"):
        yield Kubectl(path)


@needs_kubectl
def test_what_is_applied_rolls_out_scales_restarts_and_goes(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("rollout")
    created = kubectl("apply", "-f", "-", stdin=TRAIN)
    assert created.split() == [
        *("resourceclaim.resource.k8s.io/slice", "created"),
        *("deployment.apps/train", "created"),
    ]
    kubectl("rollout", "status", "deploy/train", "--timeout=20s")
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=TRAIN)
    kubectl("scale", "deploy/train", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "deploy/train", "--timeout=20s")
    kubectl("rollout", "restart", "deploy/train")
    kubectl("rollout", "status", "deploy/train", "--timeout=30s")
    assert "2" in kubectl("rollout", "history", "deploy/train").split()
    kubectl("delete", "-f", "-", "--timeout=30s", stdin=TRAIN)
    kubectl("wait", "--for=delete", "pod", "--all", "--timeout=30s")
    assert kubectl.object("resourceclaims")["items"] == []


@needs_kubectl
def test_stateful_sets_and_jobs_run(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("sets")
    kubectl("apply", "-f", "-", stdin=SET_AND_JOB)
    kubectl("rollout", "status", "sts/shard", "--timeout=30s")
    kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=30s")
    assert "shard-1" in kubectl("get", "pods")


@needs_kubectl
def test_tables_and_descriptions_say_what_people_look_for(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("tables")
    kubectl("apply", "-f", "-", stdin=TRAIN)
    kubectl("rollout", "status", "deploy/train", "--timeout=20s")
    header, *rows = kubectl("get", "pods", "-o", "wide").splitlines()
    assert header.split()[:6] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"]
    assert [row.split()[1:3] for row in rows] == [["1/1", "Running"]] * 2
    assert kubectl("get", "resourceclaim", "slice").split()[3:5] == ["slice", "allocated,reserved"]
    assert "apiVersion: apps/v1" in kubectl("get", "deploy", "train", "-o", "yaml")
    assert "NewReplicaSet:" in kubectl("describe", "deployment", "train")
    assert "Reserved For" in kubectl("describe", "resourceclaim", "slice")
    assert "Scheduled" in kubectl("describe", "pods", "-l", "app=train")
    assert "Kubelet Version" in kubectl("describe", "node", "node-0")
    assert "ScalingReplicaSet" in kubectl("get", "events")


@needs_kubectl
def test_applying_on_the_servers_side_tells_whose_fields_are_whose(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("apply")
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: VALUE}\n"
    server_side = ("apply", "--server-side", "-f", "-", "--field-manager")
    kubectl(*server_side, "one", stdin=config.replace("VALUE", "a"))
    refused = kubectl.run(*server_side, "two", stdin=config.replace("VALUE", "b"))
    assert refused.returncode == 1
    assert 'conflict with "one": .data.k' in refused.stderr
    kubectl(*server_side, "two", "--force-conflicts", stdin=config.replace("VALUE", "b"))
    assert kubectl.object("configmap", "c")["data"] == {"k": "b"}
    kubectl(*server_side, "two", "--dry-run=server", stdin=config.replace("VALUE", "z"))
    assert kubectl.object("configmap", "c")["data"] == {"k": "b"}


@needs_kubectl
@pytest.mark.parametrize("way", [["apply"], ["apply", "--server-side"]])
def test_a_pod_with_tolerations_can_be_applied_again(kubectl: Kubectl, way: list[str]) -> None:
    kubectl = kubectl.within(f"again-{len(way)}")
    for _ in range(2):
        kubectl(*way, "-f", "-", stdin=TOLERANT)


@needs_kubectl
@pytest.mark.parametrize(("cascade", "kept"), [("background", 0), ("foreground", 0), ("orphan", 1)])
def test_deletion_takes_along_what_it_is_told_to(kubectl: Kubectl, cascade: str, kept: int) -> None:
    kubectl = kubectl.within(f"delete-{cascade}")
    kubectl("create", "deployment", "web", "--image=registry.example.com/web:1")
    kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    kubectl("delete", "deploy", "web", f"--cascade={cascade}", "--timeout=30s")
    if not kept:
        kubectl("wait", "--for=delete", "rs,pod", "--all", "--timeout=30s")
    assert len(kubectl.object("rs")["items"]) == kept
    assert len(kubectl.object("pods")["items"]) == kept


@needs_kubectl
def test_discovery_schemas_and_questions_are_answered(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name").split()
    assert "resourceclaims.resource.k8s.io" in resources
    explained = kubectl("explain", "resourceclaim.spec")
    assert "devices\t<DeviceClaim>" in explained
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("create", "token", "default").startswith("embedded.")
    unknown = "apiVersion: nosuch.example.com/v1\nkind: Nosuch\nmetadata: {name: one}\n"
    refused = kubectl.run("apply", "-f", "-", stdin=unknown)
    assert 'no matches for kind "Nosuch"' in refused.stderr
    typo = TRAIN.replace("replicas: 2", "replica: 2")
    refused = kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=typo)
    assert 'unknown field "spec.replica"' in refused.stderr


@needs_kubectl
def test_a_watch_shows_changes_as_they_come(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("watch")
    assert KUBECTL is not None
    watching = subprocess.Popen(
        [
            *(KUBECTL, "--kubeconfig", str(kubectl.kubeconfig), "-n", "watch"),
            *("get", "configmaps", "--watch-only", "--no-headers", "-o", "name"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        # it shows nothing of what was made before its watch began
        for number in range(WATCH_TRIES):
            kubectl("create", "configmap", f"one-{number}", "--from-literal=a=b")
            if select.select([watching.stdout], [], [], 0.5)[0]:
                break
        else:
            pytest.fail("the watch shows nothing")
        assert watching.stdout.readline().startswith("configmap/")
    finally:
        watching.kill()
        watching.communicate(timeout=TIMEOUT_SECONDS)


@needs_kubectl
def test_a_drained_node_gives_its_pods_up(kubectl: Kubectl) -> None:
    kubectl = kubectl.within("drain")
    kubectl("create", "deployment", "web", "--image=registry.example.com/web:1", "--replicas=4")
    kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    kubectl("drain", "node-1", "--force", "--timeout=30s")
    there = "--field-selector=spec.nodeName=node-1"
    assert kubectl.object("pods", there)["items"] == []
    kubectl("uncordon", "node-1")


@needs_kubectl
def test_taints_come_and_go_one_by_one(kubectl: Kubectl) -> None:
    kubectl("taint", "node", "node-1", "a=b:PreferNoSchedule", "c=d:PreferNoSchedule")
    kubectl("taint", "node", "node-1", "a-")
    taints = kubectl.object("node", "node-1")["spec"]["taints"]
    assert [taint["key"] for taint in taints] == ["c"]
    kubectl("taint", "node", "node-1", "c-")


@needs_kubectl
def test_under_rbac_tokens_and_impersonation_decide(tmp_path: Path) -> None:
    with serving(tmp_path / "kubeconfig", "--nodes", "1"):
        kubectl = Kubectl(tmp_path / "kubeconfig")
        kubectl("create", "serviceaccount", "viewer")
        kubectl(
            "create", "rolebinding", "v", "--clusterrole=view", "--serviceaccount=default:viewer"
        )
        as_viewer = "--as=system:serviceaccount:default:viewer"
        assert kubectl("auth", "can-i", "list", "pods", as_viewer) == "yes\n"
        token = kubectl("create", "token", "viewer").strip()
        # a server looks at the certificate first, so whoever shows a token must have none
        config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        config["users"][0]["user"] = {}
        (tmp_path / "nobody").write_text(yaml.safe_dump(config))
        nobody = Kubectl(tmp_path / "nobody")
        nobody(f"--token={token}", "get", "pods")
        refused = nobody.run(f"--token={token}", "delete", "pod", "p")
        assert 'cannot delete resource "pods"' in refused.stderr
        assert "Unauthorized" in nobody.run("--token=wrong", "get", "pods").stderr


def connected(kubeconfig: Path, folder: Path) -> ssl.SSLSocket:
    """A connection to the API server as the user of a kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    texts = [
        base64.b64decode(data).decode()
        for data in (user["client-certificate-data"], user["client-key-data"])
    ]
    (folder / "user.pem").write_text("\n".join(texts))
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(folder / "user.pem")
    address = ("127.0.0.1", int(cluster["server"].rpartition(":")[2]))
    plain = socket.create_connection(address, timeout=TIMEOUT_SECONDS)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_serving_in_order_also_with_watches_open(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sent: signal.Signals, code: int
) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path, "--nodes", "0") as process:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with connected(path, tmp_path_factory.mktemp("certificate")) as watch:
            watch.sendall(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert watch.recv(64).startswith(b"HTTP/1.1 200")
            process.send_signal(sent)
            assert process.wait(timeout=TIMEOUT_SECONDS) == code
    assert list(tmp_path.iterdir()) == []


def test_a_kubeconfig_of_somebody_elses_stays_and_a_taken_port_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "config"
    mine = "clusters:\n- name: prod\n  cluster:\n    server: https://prod.example.com\n"
    path.write_text(mine)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            command("--kubeconfig", str(path), "--port", port, "--nodes", "0"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    assert (refused.returncode, path.read_text()) == (2, mine)
    assert refused.stderr.startswith(f"error: --port: cannot listen on 127.0.0.1:{port}: ")
    with serving(path, "--nodes", "0") as process:
        assert "prod.example.com" in path.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=TIMEOUT_SECONDS) == 0
    assert mine in path.read_text()
    assert "127.0.0.1" not in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig", "/nosuch/directory/config"], "No such file or directory"),
        (["--kubeconfig", "."], "Is a directory"),
        (["--kubeconfig", "config", "--reservation-mode", "latin"], "--reservation-mode"),
        (["--kubeconfig", "config", "--nodes", "-1"], "--nodes"),
        ([], "--kubeconfig"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = subprocess.run(
        command(*arguments),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
