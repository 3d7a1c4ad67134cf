"""``claimctl install --dry-run -o yaml``: the manifests, its flags and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from claimctl.cli.main import run

PRINT = ["install", "--dry-run", "-o", "yaml", "--image", "claimctl:1"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*PRINT, *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_it_prints_the_base_installation(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(yaml.safe_load_all(printed(capsys)))
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "claimctl:1"
    assert "PodMonitor" not in [each["kind"] for each in found]


def test_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--component", "crds", "-o", "json"))
    assert (found["kind"], len(found["items"])) == ("List", 4)


def test_components_are_put_together_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("--component", "network-policy", "--component", "base", "--component", "crds")
    found = list(yaml.safe_load_all(printed(capsys, *wanted, "-n", "gpus", "--image", "i:1")))
    kinds = [each["kind"] for each in found]
    assert kinds.count("CustomResourceDefinition") == 4
    assert kinds[-1] == "NetworkPolicy"
    assert found[-1]["metadata"]["namespace"] == "gpus"


def test_alerts_have_links_where_the_pages_are_on_the_web(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def annotations(*arguments: str) -> dict[str, str]:
        given = ("--component", "monitoring", *arguments)
        [found] = [
            each
            for each in yaml.safe_load_all(printed(capsys, *given))
            if each["kind"] == "PrometheusRule"
        ]
        shown: dict[str, str] = found["spec"]["groups"][0]["rules"][0]["annotations"]
        return shown

    assert annotations()["runbook"] == "docs/runbooks/alerts/ClaimctlNoLeader.md"
    assert "runbook_url" not in annotations()
    link = annotations("--runbook-url", "https://example.com/{alert}/")["runbook_url"]
    assert link == "https://example.com/ClaimctlNoLeader/"


POLICY = """\
# ours
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return str(file)


def test_rescheduling_is_a_dry_run_by_a_cron_job(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "--component", "crds", "--reschedule", policy, "--image", "i:1")
    assert "  policy.yaml: |\n    # ours\n" in text
    found = {
        (each["kind"], each["metadata"]["name"]): each
        for each in yaml.safe_load_all(text)
        if each["kind"] != "CustomResourceDefinition"
    }
    assert {kind for kind, _ in found} == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap", "CronJob"),
    }
    cron_job = found[("CronJob", "claimctl-rescheduler")]["spec"]
    [container] = cron_job["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert (cron_job["schedule"], container["image"]) == ("*/30 * * * *", "i:1")
    assert container["args"][-1] == "--dry-run"


@pytest.mark.parametrize("interval", ["90s", "1h30m"])
def test_a_duration_makes_a_loop(
    policy: str, interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--reschedule", policy, "--reschedule-schedule", interval, "--evict")
    text = printed(capsys, "--component", "crds", *flags)
    [deployment] = [each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert f"--descheduling-interval={interval}" in container["args"]
    assert "--dry-run" not in container["args"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--reschedule-schedule", "often"], "'often' is neither a schedule like"),
        (["--reschedule-schedule", "* * * *"], "'* * * *' is neither a schedule like"),
        (["--reschedule-schedule", "0"], "'0' is neither a schedule like"),
    ],
)
def test_a_schedule_is_checked(
    policy: str, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PRINT, "--reschedule", policy, *flags]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert words in captured.err


def test_a_policy_that_cannot_work_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("RemoveDuplicates", "PodLifeTime"))
    assert run([*PRINT, "--reschedule", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"error: {file}: " in captured.err
    assert "PodLifeTime" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--evict"], "--evict: only with --reschedule"),
        (["--reschedule-schedule", "5m"], "--reschedule-schedule: only with --reschedule"),
        (["--reschedule", "/nosuch"], "/nosuch: cannot be read"),
        (["--component", "nosuch"], "--component: 'nosuch' is not one of crds, rbac, controller"),
        (["--image", "a b"], "--image: 'a b' is not the name of an image"),
        (["--image", "registry/claimctl:"], "is not the name of an image"),
        (["-n", "Not_a_namespace"], "'Not_a_namespace' is not a DNS label"),
        (["--runbook-url", "https://x"], "--runbook-url: 'https://x' is not a URL with the word"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PRINT, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
