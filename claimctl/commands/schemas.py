"""Print the JSON Schema of a kind: ``python -m claimctl.commands.schemas ClaimList``."""

from __future__ import annotations

import argparse
import importlib
import json
from importlib.metadata import entry_points

from claimctl.cli.documents import Document, kind_of, schema
from claimctl.cli.printer import print_whole

MODULES = (
    "claimctl.commands.claims.documents",
    "claimctl.commands.claims.reserve_work",
    "claimctl.commands.doctor.documents",
    "claimctl.commands.downgrade.report",
    "claimctl.commands.orphans.work",
    "claimctl.commands.timeline.model",
    "claimctl.commands.tree.graph",
    "claimctl.commands.uninstall.model",
    "claimctl.reschedule.command.document",
)
"""Where the documents are."""
ENTRY_POINTS = "claimctl.documents"
"""The entry points by which other distributions add such modules."""


def models() -> dict[str, type[Document]]:
    """The documents by their kind."""
    for name in MODULES:
        importlib.import_module(name)
    for point in entry_points(group=ENTRY_POINTS):
        point.load()
    return {kind_of(model): model for model in Document.__subclasses__()}


def main(arguments: list[str] | None = None) -> None:
    program = "python -m claimctl.commands.schemas"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("kind", choices=models())
    kind = parser.parse_args(arguments).kind
    print_whole(json.dumps(schema(models()[kind]), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
