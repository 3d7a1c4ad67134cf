"""claimctl runs without the distributions that stand beside it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from claimctl.cli.registry import COMMANDS

BESIDE = ("claimctl_demo", "claimctl_reschedule", "kube_in_process")
ALONE = f"""
import importlib.metadata, sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BESIDE!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
importlib.metadata.entry_points = lambda **_: ()
"""
"""Makes a process in which only claimctl is installed."""
EVERY_MODULE = """
import claimctl
from pkgutil import walk_packages

for module in walk_packages(claimctl.__path__, "claimctl."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
EVERY_COMMAND = """
from claimctl.cli.main import run

for name in sys.argv[1:]:
    print(name, run([*name.split(), "--help"]), file=sys.stderr)
"""


def alone(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ALONE + code, *arguments], capture_output=True, text=True, timeout=60
    )


def test_each_module_of_claimctl_can_be_imported_alone() -> None:
    done = alone(EVERY_MODULE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", BESIDE)
def test_the_others_are_absent_there(module: str) -> None:
    done = alone(f"import {module}")
    assert f"No module named '{module}'" in done.stderr


def test_each_command_but_those_of_the_others_has_its_help_alone() -> None:
    names = [
        entry.name for entry in COMMANDS if entry.name.split()[0] not in ("demo", "reschedule")
    ]
    done = alone(EVERY_COMMAND, *names, "reschedule")
    assert done.stderr.splitlines() == [
        *(f"{name} 0" for name in names),
        "error: claimctl reschedule is not installed: `pip install ./claimctl-reschedule` in a "
        "clone of claimctl, else pip install the wheel of claimctl-reschedule, which is what "
        "claimctl[reschedule] asks for",
        "reschedule 2",
    ]
