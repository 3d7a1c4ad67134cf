"""Write all generated files, or check whether they are stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from generate import chart, crds, reference, values

ROOT = Path(__file__).parents[2]


GENERATORS = (
    crds.rendered,
    chart.rendered,
    values.rendered,
    reference.rendered,
)
"""In this order: the chart is made from files, and some of them are generated themselves."""


def rendered() -> dict[Path, str]:
    """The text of each generated file, by its path in the repository."""
    return {path: text for generator in GENERATORS for path, text in generator().items()}


def stale(root: Path = ROOT) -> list[Path]:
    """The files that are missing or differ from what would be generated."""
    return [
        path
        for path, text in rendered().items()
        if not (root / path).exists() or (root / path).read_text() != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is stale"
    )
    options = parser.parse_args(arguments)
    if not options.check:
        for generator in GENERATORS:
            for path, text in generator().items():
                (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
                (ROOT / path).write_text(text)
        return 0
    for path in (late := stale()):
        print(f"{path} is stale: run make generate", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
