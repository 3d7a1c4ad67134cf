"""``python -m generate.pictures``: draw the picture in the README. ``--check``: compare it only."""

from __future__ import annotations

import sys
from pathlib import Path

from kube_in_process.virtual import run

from claimctl.commands.timeline import svg
from claimctl.telemetry import logs
from generate.pictures.story import play

PICTURE = Path(__file__).parents[3] / "docs" / "pictures" / "held.svg"


def drawn() -> str:
    """The picture as it has to be."""
    logs.configure(level=logs.Level.ERROR)
    return svg.document(run(play()))


def main() -> int:
    wanted = drawn()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(wanted, encoding="utf-8")
        return 0
    if PICTURE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PICTURE.name} is out of date: run `make generate`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
