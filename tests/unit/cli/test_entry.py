"""How a process begins: a Ctrl-C during the imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
PROGRAMS = {
    "module": ("-m", "claimctl", "version", "--client"),
    "program": ("-c", "from claimctl.cli.entry import main; main()", "version", "--client"),
    "completion": ("-c", "from claimctl.cli.entry import complete; complete()", "ge"),
}


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_ctrl_c_during_the_imports_ends_without_a_traceback(program: str, tmp_path: Path) -> None:
    # the first package that the command line imports and the entry does not
    (tmp_path / "typer.py").write_text(INTERRUPTED)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program]],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
