"""Write the CRDs to ``crds/``, or check whether they are stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from claimctl.api.definitions import custom_resource_definitions

HEADER = "# Generated from claimctl/api by `make generate`; do not edit.\n"


def rendered() -> dict[str, str]:
    """The text of each file, by file name."""
    return {
        f"{document['metadata']['name']}.yaml": HEADER
        + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)
        for document in custom_resource_definitions()
    }


class _Dumper(yaml.SafeDumper):
    """A dumper without anchors: they would make a list that is used twice hard to read."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def stale(directory: Path) -> list[Path]:
    """The files that are missing or differ from the models."""
    wanted = {directory / name: text for name, text in rendered().items()}
    return [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]


def write(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (directory / name).write_text(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m claimctl.api", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is stale"
    )
    parser.add_argument("--directory", type=Path, default=Path("crds"))
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.directory)
        return 0
    for path in (late := stale(options.directory)):
        print(f"{path} is stale: run make generate", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
