"""Kubeconfig files: which are read, and one clear line about what is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from claimctl.login.connect import load_connection
from claimctl.login.kubeconfig import Entry, Overrides, Selection
from tests.support import pems
from tests.unit.login.kubeconfigs import credentials, document, encoded, problem, write


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


CLUSTER = "cluster 'c'"


USER = "user 'u'"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("a: [b", "not YAML: line 1, column 6"),
        ("- a\n- b\n", "expected clusters, users and contexts, not a list"),
        ("just text", "not text"),
        ("kind: Pod", "no contexts in it; choose another one with --kubeconfig or KUBECONFIG"),
        (
            document(current=""),
            "no current-context is set; choose one with --context; there are: x",
        ),
        ({"clusters": {"a": 1}}, "clusters must be a list, not a mapping"),
        ({"users": [{"user": {}}]}, "users[0]: 'name' is missing"),
        ({"contexts": [None]}, "contexts[0]: 'name' is missing"),
        (document(current=7), "current-context must be a string"),
        (document(current="q"), "context 'q' does not exist; there are: x"),
        (document(clusters=[]), "context 'x' names the cluster 'c', which does not exist"),
        (document(users=[]), "context 'x' names the user 'u', which does not exist"),
        (document({"server": ""}), f"{CLUSTER}: server is missing"),
        (document({"server": 7}), f"{CLUSTER}: server must be a string, not a number"),
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
            "client-key-data: key values mismatch",
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


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (Overrides(), {"certificate-authority-data": "abc", "insecure-skip-tls-verify": True}),
        (Overrides(certificate_authority="ca.crt"), {"certificate-authority": "ca.crt"}),
        (Overrides(insecure_skip_tls_verify=True), {"insecure-skip-tls-verify": True}),
    ],
    ids=["no flag", "an authority", "no verification"],
)
def test_a_flag_about_the_servers_certificate_replaces_all_that_the_file_says_of_it(
    flags: Overrides, expected: dict[str, object]
) -> None:
    of_file = {"certificate-authority-data": "abc", "insecure-skip-tls-verify": True}
    chosen = Selection("c", "", Entry("clusters[0]", of_file), Entry("users[0]"), "file")
    assert flags.apply_to(chosen).cluster.value == expected
