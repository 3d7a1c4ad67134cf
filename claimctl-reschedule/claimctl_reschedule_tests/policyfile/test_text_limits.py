"""Files that would cost a careless reader time and memory: the command answers within limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.traps import bomb

MEMORY, SECONDS = 100 << 20, 5
"""For the whole process, with its start, which takes two thirds of the memory and a second."""
LIMITED = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
from claimctl.cli.main import main
main()
"""
FILES = {
    "aliases of aliases": bomb("[{}]"),
    "merges of merges": bomb("{{<<: [{}]}}"),
    "a number of 5,000 digits": f"a: {'9' * 5000}",
    "5,000 lists in each other": f"a: {'[' * 5000}",
    "5,000 items in each other": "- " * 5000,
    "900 maps in each other": f"{'{a: ' * 900}1{'}' * 900}",
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
@pytest.mark.parametrize("name", FILES)
def test_a_costly_file_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FILES[name])
    command = ["reschedule", "--policy-config-file", str(path), "--dry-run"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}: line ")
    assert done.stderr.count("\n") == 1
