"""Bad input of ``claimctl reschedule``: one line each, exit code 2, and no request."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claimctl.cli.main import run
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.run import planfile
from tests.support.traps import bomb

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


def test_policies_that_are_traps_cost_next_to_nothing(tmp_path: Path) -> None:
    """Aliases of aliases, a number of 5,000 digits, deep nesting: 100 MB, and a second each, or on
    a machine that is busy, what the start takes."""
    traps = [bomb("[{}]"), f"a: {'9' * 5000}\n", f"a: {'[' * 5000}"]
    paths = [str(tmp_path / f"{number}.yaml") for number in range(len(traps))]
    for path, trap in zip(paths, traps, strict=True):
        Path(path).write_text(trap)
    # the first one is not there: that is what the start costs
    command = (sys.executable, "-c", _COSTS, str(tmp_path / "absent"), *paths)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    first, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["code"] == 2
    lines = done.stderr.splitlines()[1:]
    for path, answer, line in zip(paths, answers, lines, strict=True):
        assert line.startswith(f"error: {path}: line ")
        assert answer["code"] == 2
        assert answer["seconds"] < max(1, first["seconds"])
        assert answer["mebibytes"] < 100


_COSTS = """
import json, re, sys, time
from pathlib import Path
from claimctl.cli.main import run
for path in sys.argv[1:]:
    began = time.process_time()
    code = run(["reschedule", "--policy-config-file", path])
    took = time.process_time() - began
    most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    mebibytes = int(most[1]) >> 10
    print(json.dumps({"code": code, "seconds": took, "mebibytes": mebibytes}))
"""
"""Reads policies in a process of its own, and says of each what it cost by then. (The most memory
that ``getrusage`` tells may be that of the process from which this one was forked.)"""


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
