"""The plugin that runs tests in forked processes, on small tests of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNNER = """
import sys
import pytest
from tests.e2e.forked import SideBySide

def apart(item):
    return "alone" in item.name

def tidy():
    with open(sys.argv[1] + "/tidied", "a") as told:
        told.write("x")

beside = SideBySide(int(sys.argv[2]), apart, 1, tidy)
sys.exit(pytest.main(["-q", "-ra", "-p", "no:cacheprovider", *sys.argv[3:]], plugins=[beside]))
"""
TESTS = """
import os
import signal
import pytest

def test_good(tmp_path):
    print("not shown")

def test_bad():
    print("said before it failed")
    assert 1 == 2

@pytest.mark.skip(reason="not today")
def test_left(): pass

def test_dies():
    os._exit(3)

def test_alone_one(): os.environ["ALONE"] = "one"
def test_alone_two(): assert os.environ["ALONE"] == "one"

@pytest.mark.parametrize("n", range(20))
def test_many(n): assert "ALONE" not in os.environ
"""


def played(directory: Path, tests: str, *arguments: str, workers: int = 3) -> tuple[int, str]:
    (directory / "test_some.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(directory), str(workers), *arguments, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_each_test_is_played_once_and_told_of(tmp_path: Path) -> None:
    code, out = played(tmp_path, TESTS)
    assert code == 1
    assert "2 failed, 23 passed, 1 skipped" in out
    assert "said before it failed" in out
    assert "not shown" not in out
    assert "test_dies: the process that played it has ended" in out
    assert re.search(r"^failed: \S+::test_bad: assert 1 == 2$", out, re.MULTILINE)
    assert "not today" in out
    # the one that died has not
    assert (tmp_path / "tidied").read_text() == "xxx"


def test_all_good_is_a_success(tmp_path: Path) -> None:
    code, out = played(tmp_path, "def test_good(): pass")
    assert (code, "1 passed" in out) == (0, True)


def test_nothing_to_play_is_said(tmp_path: Path) -> None:
    code, out = played(tmp_path, "def test_good(): pass", "-k", "nosuch")
    assert (code, "no tests ran" in out or "deselected" in out) == (5, True)


def test_tests_that_no_process_is_left_for_have_failed(tmp_path: Path) -> None:
    tests = "import os\ndef test_dies(): os._exit(3)\ndef test_late(): pass"
    code, out = played(tmp_path, tests, workers=1)
    assert (code, "2 failed" in out) == (1, True)


def test_the_first_failure_can_end_it(tmp_path: Path) -> None:
    tests = "import time\ndef test_bad(): assert 0\ndef test_long(): time.sleep(600)"
    code, out = played(tmp_path, tests, "-x")
    assert (code, "1 failed" in out) == (1, True)
