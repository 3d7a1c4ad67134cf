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
TESTS = """
import os
from pathlib import Path

CONFIG = Path("~/.kube/config").expanduser()

def test_the_cluster_is_there():
    assert str(CONFIG) == os.environ["KUBECONFIG"]
    assert "https://127.0.0.1" in CONFIG.read_text()

def test_what_fails():
    assert False

def test_what_is_skipped():
    assert False
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
    (tmp_path / "test_client.py").write_text(TESTS)
    assert main([str(tmp_path), "--", "-k", "not skipped"]) == 1
    assert "kube-in-process  1 passed  1 failed  0 skipped" in capfd.readouterr().out
