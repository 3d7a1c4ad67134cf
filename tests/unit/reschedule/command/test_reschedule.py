"""Bad input of ``claimctl reschedule``: one line each, exit code 2, and no request."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claimctl.cli.main import run
from claimctl.reschedule.plan.plan import Plan
from claimctl.reschedule.run import planfile

POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILE = "--policy-config-file"


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


@pytest.fixture(autouse=True)
def _no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that asked for a connection would fail with another line."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(["reschedule", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--policy-config-file is missing: name a DeschedulerPolicy file"),
        ([FILE, "x", "--plan", "p", "--why", "a/b"], "--plan and --why exclude each other"),
        ([FILE, "x", "--why", "a/b", "--dry-run"], "--why and --dry-run exclude each other"),
        (["--release-taints", "--dry-run"], "--release-taints and --dry-run exclude each other"),
        (
            [FILE, "x", "--descheduling-interval", "5m", "--dry-run=server"],
            "--descheduling-interval: only with --dry-run=client, not with server",
        ),
        ([FILE, "x", "--plan-out", "p"], "--plan-out: only with --dry-run, and without --plan"),
        (
            [FILE, "x", "--record", "A B"],
            "Invalid value for '--record': 'A B' is not a DNS name: lower-case letters, digits, "
            "'-' and '.' are expected (see 'claimctl reschedule --help')",
        ),
        ([FILE, "x", "--why", "pod"], "--why: 'pod' is not NAMESPACE/POD"),
        ([FILE, "x", "--deadline", "0"], "--deadline: more than 0 is expected, such as 5m"),
        ([FILE, "absent", "--dry-run"], "absent: cannot be read: No such file or directory"),
    ],
)
def test_flags_that_do_not_go_together(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, *arguments) == [f"error: {expected}"]


def test_each_fault_of_a_policy_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY + "  other: 1\nmore: 2\n")
    assert [line.partition(" unknown")[0] for line in refused(capsys, FILE, str(path))] == [
        f"error: {path}: profiles[0].other:",
        f"error: {path}: more:",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is not a plan: "),
        ("{}", "is not a ReschedulePlan of cli.claimctl.io/v1alpha1"),
        ("edited", "was edited: its digest does not fit its content; make another plan"),
    ],
)
def test_a_plan_that_cannot_be_used(
    content: str, expected: str, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    if content == "edited":
        plan = Plan(made_at=NOON, cluster_uid="c-1").sealed()
        content = json.dumps({**planfile.document(plan), "clusterUid": "c-2"})
    path.write_text(content)
    (line,) = refused(capsys, FILE, policy, "--plan", str(path))
    assert line.startswith(f"error: {path}: {expected}")
