"""One module uses what typer does not promise to keep."""

from __future__ import annotations

import re
from pathlib import Path

import claimctl

PRIVATE = re.compile(r"\btyper\._|from typer import _|_custom_shell_complete")


def test_no_other_module_uses_a_private_name_of_typer() -> None:
    folder = Path(claimctl.__file__).parent
    using = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if PRIVATE.search(path.read_text(encoding="utf-8"))
    }
    assert using == {"cli/typer_internals.py"}
