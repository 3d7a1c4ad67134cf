"""From kubeconfigs of all kinds to connections, or to one clear line."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.kube.auth import Credentials
from claimctl.kube.connection import Connection, load_connection
from claimctl.kube.errors import ConfigError
from claimctl.kube.official import incluster_config
from tests.support import pems


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def document(
    cluster: dict[str, Any] | None = None, user: Any = None, current: Any = "x", **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://kube.test:6443", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "current-context": current,
        **more,
    }


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def credentials(connection: Connection, rejected: Credentials | None = None) -> Credentials:
    return asyncio.run(connection.auth.credentials(rejected))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def problem(path: str | None, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_connection(path, context)
    text = str(caught.value)
    assert "\n" not in text
    return text


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


def test_user_and_password_become_basic_authorization(tmp_path: Path) -> None:
    content = document(user={"username": "u", "password": "p"})
    found = load_connection(write(tmp_path / "k", content))
    assert credentials(found).authorization == f"Basic {encoded('u:p')}"


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


def test_of_several_files_the_first_to_name_a_thing_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"current-context": "x", "users": [{"name": "u", "user": {"tokenFile": "token"}}]}
    second = document(user={"token": "second"}, current="z")
    paths = [
        write(tmp_path / "a" / "k", first),
        str(tmp_path / "missing"),
        write(tmp_path / "b" / "k", second),
    ]
    write(tmp_path / "a" / "token", "from beside its own file\n")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(paths))
    found = load_connection()
    assert found.context == "x"
    assert credentials(found).authorization == "Bearer from beside its own file"


def test_the_default_file_is_the_one_in_the_home_directory(tmp_path: Path) -> None:
    write(tmp_path / "home" / ".kube" / "config", document())
    assert load_connection().context == "x"


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


CLUSTER = "cluster 'c'"
USER = "user 'u'"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("a: [b", "not YAML: line 1, column 6"),
        ("- a\n- b\n", "expected clusters, users and contexts, not a list"),
        ("just text", "not text"),
        ("{}", "no current-context is set; choose one with --context; there are none"),
        ({"clusters": {"a": 1}}, "clusters must be a list, not a mapping"),
        ({"users": [{"user": {}}]}, "users[0]: 'name' is missing"),
        ({"contexts": [None]}, "contexts[0]: 'name' is missing"),
        (document(current=7), "current-context must be a string"),
        (document(current="q"), "context 'q' does not exist; there are: x"),
        (document(clusters=[]), "context 'x' names the cluster 'c', which does not exist"),
        (document(users=[]), "context 'x' names the user 'u', which does not exist"),
        (document({"server": ""}), f"{CLUSTER}: server is missing"),
        (document({"server": 7}), f"{CLUSTER}: server must be a string"),
        (document({"server": "kube:6443"}), "server 'kube:6443' is not an http(s) URL"),
        (document({"server": "https://kube:port"}), "is not an http(s) URL"),
        (document({"proxy-url": "socks5://p"}), "proxy-url 'socks5://p': only http and https"),
        (document({"insecure-skip-tls-verify": "yes"}), "insecure-skip-tls-verify must be true"),
        (document({"certificate-authority-data": "%"}), "certificate-authority-data: not base64"),
        (
            document({"certificate-authority-data": encoded("x")}),
            "certificate-authority-data: no PEM certificate in it",
        ),
        (document({"certificate-authority": "no.crt"}), "no.crt: No such file or directory"),
        (
            document(user={"client-certificate-data": encoded(pems.CLIENT_CERTIFICATE)}),
            f"{USER}: client-key is missing",
        ),
        (
            document(
                user={
                    "client-certificate-data": encoded(pems.CLIENT_CERTIFICATE),
                    "client-key-data": encoded(pems.SERVER_KEY),
                }
            ),
            "client-certificate-data: does not go with",
        ),
        (
            document(user={"client-certificate-data": encoded("x"), "client-key-data": "eA=="}),
            "client-certificate-data: does not go with",
        ),
        (document(user={"token": "two\nlines"}), f"{USER}: token must be a single line"),
        (document(user={"exec": "x"}), f"{USER}: exec must be a mapping"),
        (document(user={"exec": {"command": "x"}}), f"{USER}: exec: apiVersion is missing"),
        (document(user={"exec": {"apiVersion": "v"}}), f"{USER}: exec: command is missing"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said_in_one_line(
    tmp_path: Path, content: Any, says: str
) -> None:
    path = write(tmp_path / "k", content)
    text = problem(path)
    assert text.startswith(f"kubeconfig {path}: ")
    assert says in text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert problem(str(tmp_path / "no")) == (
        f"kubeconfig {tmp_path}/no: No such file or directory;"
        " choose another one with --kubeconfig or KUBECONFIG"
    )
    assert "Is a directory" in problem(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in problem(str(tmp_path / "binary"))


def test_a_kubeconfig_variable_that_names_only_missing_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/no")
    assert problem(None) == f"KUBECONFIG names {tmp_path}/no: no such file; correct or unset it"


def test_without_any_configuration_it_is_said_where_one_was_looked_for() -> None:
    assert problem(None).startswith("no kubeconfig: KUBECONFIG is not set, ~/.kube/config")


def plugin(tmp_path: Path, script: str, **settings: Any) -> Connection:
    """A kubeconfig whose plugin is ``script``, named relative to it."""
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", **settings}
    return load_connection(write(tmp_path / "k", document(user={"exec": exec_})))


def answer(status: str) -> str:
    return (
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1",'
        f' "kind": "ExecCredential", "status": {status}}}\''
    )


COUNTING = 'n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n+1)); echo $n > "$0.n"\n'


def counting(status: str) -> str:
    return COUNTING + answer(status).replace("NUMBER", "'$n'")


def both(connection: Connection, *, reject: bool) -> list[str]:
    """Two credentials in a row, the first rejected by the server or not."""

    async def main() -> list[str]:
        first = await connection.auth.credentials()
        second = await connection.auth.credentials(first if reject else None)
        return [first.authorization, second.authorization]

    return asyncio.run(main())


def test_a_plugin_is_run_once_while_its_token_is_good(tmp_path: Path) -> None:
    end = '"expirationTimestamp": "2126-01-01T00:00:00Z"'
    connection = plugin(tmp_path, counting(f'{{"token": "t-NUMBER", {end}}}'))
    assert both(connection, reject=False) == ["Bearer t-1", "Bearer t-1"]


def test_a_plugin_is_run_again_for_a_token_that_was_refused(tmp_path: Path) -> None:
    connection = plugin(tmp_path, counting('{"token": "t-NUMBER"}'))
    assert both(connection, reject=True) == ["Bearer t-1", "Bearer t-2"]


def test_a_plugin_is_run_again_for_a_token_that_has_ended(tmp_path: Path) -> None:
    end = '"expirationTimestamp": "2020-01-01T00:00:00Z"'
    connection = plugin(tmp_path, counting(f'{{"token": "t-NUMBER", {end}}}'))
    assert both(connection, reject=False) == ["Bearer t-1", "Bearer t-2"]


def test_a_plugin_gets_its_arguments_and_its_environment(tmp_path: Path) -> None:
    connection = plugin(
        tmp_path,
        answer('{"token": "NUMBER"}').replace("NUMBER", "'$1-$WHO'"),
        args=[7],
        env=[{"name": "WHO", "value": "me"}],
    )
    assert credentials(connection).authorization == "Bearer 7-me"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo no; (echo the; echo net) >&2; exit 3", "plugin: process returned 3: the net"),
        ("echo nonsense", "failed to decode process output"),
        ("echo '{}'", "malformed response. missing key 'apiVersion'"),
        (answer('"no"'), "'status' of its answer is not a mapping"),
        (answer("{}"), "gave neither a token nor a certificate with key"),
        (answer('{"token": "t", "expirationTimestamp": "soon"}'), "'soon' is not a time"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_in_one_line(
    tmp_path: Path, script: str, says: str
) -> None:
    connection = plugin(tmp_path, script)
    with pytest.raises(ConfigError) as caught:
        credentials(connection)
    text = str(caught.value)
    assert text.startswith(f"kubeconfig {tmp_path}/k: user 'u': exec")
    assert says in text
    assert "\n" not in text


def test_a_plugin_that_is_not_installed_is_named_with_its_hint(tmp_path: Path) -> None:
    exec_ = {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "get it at x"}
    connection = load_connection(write(tmp_path / "k", document(user={"exec": exec_})))
    with pytest.raises(ConfigError, match="no-such-plugin: No such file or directory; get it at x"):
        credentials(connection)


def test_an_auth_provider_that_fails_is_named(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "bad"}}}
    connection = load_connection(write(tmp_path / "k", document(user=user)))
    with pytest.raises(ConfigError, match="user 'u': auth-provider: oidc: JWT tokens should"):
        credentials(connection)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a pod; returns its service account's token file."""
    token = tmp_path / "token"
    token.write_text("first\n")
    write(tmp_path / "ca.crt", pems.AUTHORITY)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
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


def test_a_pod_without_its_token_is_told_so(pod: Path) -> None:
    pod.unlink()
    assert problem(None) == (
        "in-cluster: Service token file does not exist. Is the service account token mounted?"
    )
