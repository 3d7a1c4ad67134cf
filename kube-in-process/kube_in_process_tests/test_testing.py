"""The cluster in a thread, and the fixture of pytest, as a reader of the README meets them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.manifests import NotApplied
from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.serving.kubeconfig import read_kubeconfig
from kube_in_process.serving.tls import client_context
from kube_in_process.storage.requests import Fault, FaultPoint
from kube_in_process.testing import NotInTime, ServedCluster, served

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def ask(cluster: ServedCluster, path: str, kubeconfig: Path | None = None) -> Any:
    """The answer to a client that has the kubeconfig, by default the administrator's."""
    access = read_kubeconfig(kubeconfig or cluster.kubeconfig)
    headers = {"authorization": f"Bearer {access.token}"} if access.token else {}
    request = Request(f"{access.url}{path}", headers=headers)
    with urlopen(request, context=client_context(access)) as answer:
        return json.load(answer)


def nodes(cluster: ServedCluster) -> int:
    return len(ask(cluster, "/api/v1/nodes")["items"])


@pytest.mark.kube_cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=5))
def test_the_mark_says_what_cluster(kube_cluster: ServedCluster) -> None:
    assert nodes(kube_cluster) == 5
    assert kube_cluster.url in kube_cluster.kubeconfig.read_text()


def test_a_fault_is_set_from_the_test(kube_cluster: ServedCluster) -> None:
    kube_cluster.call(lambda cluster: cluster.fault_requests(lambda point: Fault(status=503)))
    with pytest.raises(HTTPError, match="503"):
        nodes(kube_cluster)


def test_an_error_of_a_call_reaches_the_test(kube_cluster: ServedCluster) -> None:
    with pytest.raises(KeyError):
        kube_cluster.call(lambda cluster: cluster.admin.api.kinds.named("unknown"))


def test_a_wait_ends(kube_cluster: ServedCluster) -> None:
    with pytest.raises(NotInTime):
        kube_cluster.wait_until(lambda: False, seconds=0.01)


def test_a_failed_component_fails_the_test(tmp_path: Path) -> None:
    error = ValueError("planted")
    with pytest.raises(ExceptionGroup), served(tmp_path) as cluster:
        cluster.call(lambda cluster: cluster.failures.append(error))


WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def test_the_kubeconfig_is_of_an_administrator_with_a_certificate(
    kube_cluster: ServedCluster,
) -> None:
    access = read_kubeconfig(kube_cluster.kubeconfig)
    assert access.url.startswith("https://127.0.0.1:")
    assert (access.token, "PRIVATE KEY" in access.client_key) == ("", True)
    # a server looks at the certificate first, and at no token then
    headers = {"content-type": "application/json", "authorization": "Bearer nonsense"}
    request = Request(f"{access.url}{WHO}", b"{}", headers)
    with urlopen(request, context=client_context(access)) as answer:
        user = json.load(answer)["status"]["userInfo"]
    assert user["username"] == "kubernetes-admin"
    assert user["groups"] == ["system:masters", "system:authenticated"]
    [credential] = user["extra"]["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


def test_nobody_in_particular_may_do_nothing(kube_cluster: ServedCluster) -> None:
    access = read_kubeconfig(kube_cluster.kubeconfig)
    context = client_context(replace(access, client_certificate=""))
    with pytest.raises(HTTPError, match="403"):
        urlopen(f"{access.url}/api/v1/nodes", context=context)


VIEWERS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: viewers}]
"""


def test_another_user_may_do_what_roles_allow(kube_cluster: ServedCluster) -> None:
    kube_cluster.apply(VIEWERS)
    viewer = kube_cluster.user("jane", ["viewers"])
    assert ask(kube_cluster, "/api/v1/configmaps", viewer)["kind"] == "ConfigMapList"
    with pytest.raises(HTTPError, match="403"):
        ask(kube_cluster, "/api/v1/secrets", viewer)
    with pytest.raises(HTTPError, match="403"):
        ask(kube_cluster, "/api/v1/configmaps", kube_cluster.user("john"))


def test_the_user_of_an_account_is_in_its_groups(kube_cluster: ServedCluster) -> None:
    kube_cluster.apply(VIEWERS.replace("name: viewers}]", "name: 'system:serviceaccounts:ns'}]"))
    account = kube_cluster.user("system:serviceaccount:ns:robot")
    assert ask(kube_cluster, "/api/v1/configmaps", account)["kind"] == "ConfigMapList"


def test_files_folders_and_texts_are_applied(kube_cluster: ServedCluster, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "1.yaml").write_text(f"{DEFINITION}---\n{VIEWERS}")
    (folder / "2.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [THING]})
    )
    (folder / "README.md").write_text("no object")
    applied = kube_cluster.apply(folder)
    assert [obj["metadata"]["name"] for obj in applied] == ["things.x.io", "viewers", "one"]
    assert applied[2]["metadata"]["namespace"] == "default"
    again = kube_cluster.apply(str(folder / "2.json"))
    assert again[0]["metadata"]["resourceVersion"] == applied[2]["metadata"]["resourceVersion"]


THING = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "one"}}
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io}
spec:
  group: x.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


def test_an_object_that_is_refused_is_named(kube_cluster: ServedCluster) -> None:
    with pytest.raises(NotApplied, match=r"^ConfigMap Bad: ConfigMap \"Bad\" is invalid"):
        kube_cluster.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad}\n")
    with pytest.raises(NotApplied, match=r'no kind "Thing" is served in version "x\.io/v1"'):
        kube_cluster.apply("apiVersion: x.io/v1\nkind: Thing\n")
    with pytest.raises(ValueError, match="the text has a document without apiVersion and kind"):
        kube_cluster.apply("a\nb\n")


def test_definitions_are_there_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "things.yml").write_text(f"{DEFINITION}---\n{VIEWERS}")
    with served(tmp_path, ClusterOptions(crd_folders=(tmp_path,))) as cluster:
        assert ask(cluster, "/apis/x.io/v1/things")["kind"] == "ThingList"
        roles = ask(cluster, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
        assert "viewers" not in [role["metadata"]["name"] for role in roles["items"]]
    with (
        pytest.raises(FileNotFoundError, match="nowhere is no folder"),
        served(tmp_path, ClusterOptions(crd_folders=(tmp_path / "nowhere",))),
    ):
        pass


def test_the_first_pod_has_an_account_from_the_start(kube_cluster: ServedCluster) -> None:
    def account(cluster: Cluster) -> object:
        return cluster.admin.find("serviceaccounts", "default", "default")

    assert kube_cluster.call(account) is not None


@pytest.mark.kube_cluster(ClusterOptions(authorization=Authorization.ALWAYS_ALLOW))
def test_without_authorization_there_is_no_tls(kube_cluster: ServedCluster) -> None:
    with urlopen(f"{kube_cluster.url}/api/v1/nodes") as answer:
        assert (kube_cluster.url[:5], answer.status) == ("http:", 200)


SESSIONS: list[str] = []


@pytest.mark.parametrize("number", [0, 1])
def test_the_cluster_of_the_run_stays(kube_cluster_session: ServedCluster, number: int) -> None:
    assert nodes(kube_cluster_session) == 3
    SESSIONS.append(kube_cluster_session.url)
    assert len(set(SESSIONS)) == 1


def test_refused_syncs_print_nothing(
    kube_cluster: ServedCluster,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused: list[FaultPoint] = []

    def refuse(point: FaultPoint) -> Fault:
        refused.append(point)
        return Fault(status=503)

    kube_cluster.call(lambda cluster: cluster.fault_components(refuse))
    kube_cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n")
    kube_cluster.wait_until(lambda: len(refused) > 1)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_the_examples_of_the_readme_run(tmp_path: Path) -> None:
    for number, text in enumerate(BLOCKS):
        if "def test_" not in text and "def story" not in text:
            text = f"def test_it(kube_cluster):\n{re.sub('^', '    ', text, flags=re.MULTILINE)}"
        if "def story" in text:
            text = f"def test_it():\n{re.sub('^', '    ', text, flags=re.MULTILINE)}"
        # as it is printed: who copies it has no other imports
        (tmp_path / f"test_readme_{number}.py").write_text(text)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
