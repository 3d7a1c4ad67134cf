"""The embedded cluster's context in a kubeconfig that may be somebody's."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest
import yaml
from kube_in_process.serving.context import NotUsable, check, join, leave
from kube_in_process.serving.kubeconfig import NAME, Access

HERE = Access("http://127.0.0.1:1")
THERE = Access("http://127.0.0.1:2", token="t", certificate="PEM")
PROD = """\
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- name: prod
  cluster: {server: "https://prod.example.com", insecure-skip-tls-verify: true}
users:
- name: admin
  user:
    token: "0123"
    auth-provider: {name: oidc, config: {expiry: 2026-01-01T00:00:00Z}}
contexts:
- name: prod
  context: {cluster: prod, user: admin, namespace: ml}
current-context: prod
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def names(path: Path) -> dict[str, list[str]]:
    document = yaml.safe_load(path.read_text())
    return {
        section: [entry["name"] for entry in document[section]]
        for section in ("clusters", "users", "contexts")
    }


def test_a_file_of_somebody_elses_gets_a_context_and_is_as_before_at_the_end(config: Path) -> None:
    config.write_text(PROD)
    config.chmod(0o640)
    join(config, THERE)
    assert set(map(tuple, names(config).values())) == {("prod", NAME), ("admin", NAME)}
    assert yaml.safe_load(config.read_text())["current-context"] == NAME
    leave(config, THERE)
    before = yaml.load(PROD, yaml.BaseLoader)
    assert yaml.load(config.read_text(), yaml.BaseLoader) == before
    assert yaml.safe_load(config.read_text())["users"][0]["user"]["token"] == "0123"
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert list(config.parent.iterdir()) == [config]


def test_a_file_that_was_not_there_is_gone_at_the_end(config: Path) -> None:
    join(config, HERE)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"] == HERE.url
    leave(config, HERE)
    assert list(config.parent.iterdir()) == []


def test_what_a_killed_cluster_left_is_replaced_and_the_context_before_it_comes_back(
    config: Path,
) -> None:
    config.write_text(PROD)
    join(config, HERE)
    join(config, THERE)
    assert names(config)["clusters"] == ["prod", NAME]
    leave(config, HERE)
    assert names(config)["clusters"] == ["prod", NAME], "it is another cluster's now"
    leave(config, THERE)
    assert yaml.safe_load(config.read_text())["current-context"] == "prod"


def test_the_file_of_a_cluster_that_runs_is_refused_and_stays(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        running = Access(f"http://127.0.0.1:{first.getsockname()[1]}")
        join(config, running)
        before = config.read_text()
        for act in (check, lambda path: join(path, THERE)):
            with pytest.raises(NotUsable, match=f"a cluster that runs at {running.url}; name anot"):
                act(config)
        assert config.read_text() == before
    check(config)


def test_a_context_that_the_user_chose_meanwhile_stays_current(config: Path) -> None:
    config.write_text(PROD.replace("current-context: prod", ""))
    join(config, HERE)
    document = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**document, "current-context": "prod"}))
    leave(config, HERE)
    assert yaml.safe_load(config.read_text())["current-context"] == "prod"


def test_a_symbolic_link_stays_one(config: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_text(PROD)
    config.symlink_to("real")
    join(config, HERE)
    assert config.is_symlink()
    assert NAME in names(tmp_path / "real")["clusters"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("notes: mine", "is not a kubeconfig"),
        ("- a\n- b\n", "is not a kubeconfig"),
        ("just text", "is not a kubeconfig"),
        ("a: [", "is not a kubeconfig"),
        ("kind: Deployment\nspec: {}", "is not a kubeconfig"),
        ("clusters: {a: b}", "is not a kubeconfig"),
        ("clusters: [{cluster: {}}]", "is not a kubeconfig"),
        (
            f"clusters: [{{name: {NAME}, cluster: {{server: https://prod}}}}]",
            "another program wrote",
        ),
        (f"users: [{{name: {NAME}}}]", "another program wrote"),
    ],
)
def test_a_file_that_is_something_else_is_refused_and_stays(
    config: Path, text: str, expected: str
) -> None:
    config.write_text(text)
    for act in (check, lambda path: join(path, HERE)):
        with pytest.raises(NotUsable, match=expected):
            act(config)
    assert config.read_text() == text
    assert list(config.parent.iterdir()) == [config]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "clusters: []\nusers:\n"])
def test_an_empty_file_is_used_and_stays(config: Path, text: str) -> None:
    config.write_text(text)
    check(config)
    join(config, HERE)
    leave(config, HERE)
    assert names(config) == {"clusters": [], "users": [], "contexts": []}


def test_a_file_that_another_program_writes_is_left_alone(config: Path) -> None:
    config.write_text(PROD)
    lock = config.with_name("config.lock")
    lock.touch()
    with pytest.raises(NotUsable, match=r"config.lock exists: another program writes"):
        join(config, HERE)
    assert (config.read_text(), lock.exists()) == (PROD, True)


def test_what_others_removed_is_no_error_at_the_end(config: Path) -> None:
    join(config, HERE)
    config.write_text(PROD)
    leave(config, HERE)
    assert config.read_text() == PROD
