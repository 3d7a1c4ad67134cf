"""A client's own tests are run on a cluster, and compared with those on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from judges.suite import lost, main, outcomes_of

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="good"/><testcase classname="a" name="bad"><failure/></testcase>
<testcase classname="a" name="broken"><error/></testcase>
<testcase classname="a" name="not"><skipped/></testcase>
</testsuite></testsuites>"""
PYTHON = """#!/bin/sh
# writes a report as pytest does: one test looks for the cluster
for given; do case $given in --junitxml=*) report=${given#*=};; esac; done
outcome='<failure/>'
[ "$KUBECONFIG" = "$HOME/.kube/config" ] && grep -q https://127.0.0.1 "$KUBECONFIG" && outcome=
echo "in $PWD: $*"
echo "<x><testcase classname='a' name='b'>$outcome</testcase></x>" >"$report"
"""


def test_what_passes_on_real_servers_only_is_lost(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert outcomes_of(report) == {}
    report.write_text(REPORT)
    here = outcomes_of(report)
    assert here == {
        "a::good": "passed",
        "a::bad": "failed",
        "a::broken": "failed",
        "a::not": "skipped",
    }
    there = {"a::good": "passed", "a::bad": "passed", "a::broken": "failed", "a::new": "passed"}
    assert lost(here, there) == ["a::bad", "a::new"]


def test_the_tests_of_a_folder_find_the_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    assert main([str(tmp_path), "--python", str(python), "--", "-k", "name"]) == 0
    output = capfd.readouterr().out
    assert f"in {tmp_path}: -m pytest -q " in output
    assert " -k name\n" in output
    assert "kube-in-process  1 passed  0 failed  0 skipped" in output
