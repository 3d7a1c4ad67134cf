"""From kubeconfigs of all kinds to connections, or to one clear line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from claimctl.kube.connection import Credentials
from claimctl.login import in_cluster
from claimctl.login.connect import load_connection
from tests.support import pems
from tests.unit.login.kubeconfigs import credentials, document, encoded, problem, write


def test_a_kubeconfig_says_where_to_go_and_who_to_be(tmp_path: Path) -> None:
    path = write(
        tmp_path / "k",
        document({"tls-server-name": "other", "proxy-url": "http://proxy:3128"}),
    )
    found = load_connection(path)
    assert (found.server, found.namespace, found.context) == ("https://kube.test:6443", "ns", "x")
    assert (found.server_name, found.proxy) == ("other", "http://proxy:3128")
    assert found.source == f"kubeconfig {path}"
    assert credentials(found).authorization == "Bearer secret"


@pytest.mark.real_time(120)
async def test_a_connection_can_be_loaded_in_a_running_loop(tmp_path: Path) -> None:
    path = write(tmp_path / "k", document())
    assert load_connection(path).server == "https://kube.test:6443"


def test_secrets_are_not_in_what_a_connection_prints(tmp_path: Path) -> None:
    path = write(tmp_path / "k", document(user={"token": "hunter2"}))
    assert "hunter2" not in repr(load_connection(path))


def test_another_context_may_be_chosen(tmp_path: Path) -> None:
    content = document()
    content["contexts"].append({"name": "y", "context": {"cluster": "c"}})
    found = load_connection(write(tmp_path / "k", content), "y")
    assert (found.context, found.namespace) == ("y", "default")
    assert credentials(found) == Credentials()


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {"token": "t", "as": "eve", "as-groups": ["g", "h"], "as-user-extra": {"k": ["v"]}}
    path = write(tmp_path / "k", document(user=user))
    assert load_connection(path).headers == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-k", "v"),
    )
    assert load_connection(path, as_user="adam").headers == (("Impersonate-User", "adam"),)


def test_certificates_may_be_files_beside_the_kubeconfig_or_data(tmp_path: Path) -> None:
    write(tmp_path / "ca.crt", pems.AUTHORITY)
    user = {
        "client-certificate-data": encoded(pems.CLIENT_CERTIFICATE),
        "client-key-data": encoded(pems.CLIENT_KEY),
    }
    content = document({"certificate-authority": "ca.crt"}, user)
    found = load_connection(write(tmp_path / "k", content))
    assert found.tls.authority is not None
    assert found.tls.authority.data == pems.AUTHORITY.encode()
    assert found.tls.context().cert_store_stats()["x509_ca"] == 1


def test_without_any_configuration_it_is_said_where_one_was_looked_for() -> None:
    assert problem(None).startswith("no kubeconfig: KUBECONFIG is not set, ~/.kube/config")


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a pod; returns its service account's token file."""
    token = tmp_path / "token"
    token.write_text("first\n")
    write(tmp_path / "ca.crt", pems.AUTHORITY)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(in_cluster, "_TOKEN_FILE", str(token))
    monkeypatch.setattr(in_cluster, "_AUTHORITY_FILE", str(tmp_path / "ca.crt"))
    return token


@pytest.mark.real_time(120)
async def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(pod: Path) -> None:
    found = load_connection(as_user="eve")
    assert (found.server, found.source) == ("https://10.0.0.1:443", "in-cluster")
    assert found.headers == (("Impersonate-User", "eve"),)

    def rewrite(text: str) -> None:
        pod.write_text(text)

    first = await found.auth.credentials()
    rewrite("second")
    again = await found.auth.credentials()
    fresh = await found.auth.credentials(first)
    rewrite("")
    kept = await found.auth.credentials(fresh)
    assert ([each.authorization for each in (first, again, fresh, kept)]) == [
        "Bearer first",
        "Bearer first",
        "Bearer second",
        "Bearer second",
    ]


@pytest.mark.parametrize(
    ("content", "namespace"),
    [
        pytest.param("team\n", "team", id="its own"),
        pytest.param("", "default", id="an empty file"),
        pytest.param(None, "default", id="no file"),
    ],
)
def test_a_pod_knows_its_namespace(
    content: str | None, namespace: str, pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pod.with_name("namespace")
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr(in_cluster, "_NAMESPACE_FILE", str(file))
    assert load_connection().namespace == namespace


def test_a_pod_without_its_token_is_told_so(pod: Path) -> None:
    pod.unlink()
    assert problem(None) == (
        f"in-cluster: {pod}: No such file or directory. Is the service account token mounted?"
    )


def test_a_pod_without_a_port_is_told_so(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    assert problem(None) == (
        "in-cluster: KUBERNETES_SERVICE_PORT is not set, although KUBERNETES_SERVICE_HOST is"
    )


def test_a_pod_reaches_a_server_by_ipv6(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert load_connection().server == "https://[fd00::1]:443"


def test_without_a_plugin_the_official_client_is_not_imported(tmp_path: Path) -> None:
    path = write(tmp_path / "k", document(user={"token": "t"}))
    program = (
        "import sys; from claimctl.kube import transport; from claimctl.login import connect;"
        f"connect.load_connection({path!r}); print('kubernetes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
