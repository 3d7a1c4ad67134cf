"""Print the JSON Schema of a kind: ``python -m claimctl.commands.schemas ClaimList``."""

from __future__ import annotations

import argparse
import importlib
import json

from claimctl.cli.documents import Document, kind_of, schema
from claimctl.cli.extensions import extensions
from claimctl.cli.printer import print_whole

MODULES = (
    "claimctl.commands.claims.claim_document",
    "claimctl.commands.claims.documents",
    "claimctl.commands.claims.node_explanation",
    "claimctl.commands.claims.pod_document",
    "claimctl.commands.claims.release_request",
    "claimctl.commands.claims.reserve_work",
    "claimctl.commands.claims.workload_document",
    "claimctl.commands.doctor.documents",
    "claimctl.commands.doctor.versions",
    "claimctl.commands.downgrade.report",
    "claimctl.commands.drivers.documents",
    "claimctl.commands.orphans.work",
    "claimctl.commands.timeline.model",
    "claimctl.commands.tree.graph",
    "claimctl.commands.uninstall.model",
)
"""Where claimctl's own documents are. Extensions name theirs."""


def models() -> dict[str, type[Document]]:
    """The documents by their kind."""
    of_extensions = (name for extension in extensions().values() for name in extension.documents)
    for name in (*MODULES, *of_extensions):
        importlib.import_module(name)
    return {kind_of(model): model for model in Document.__subclasses__()}


def main(arguments: list[str] | None = None) -> None:
    program = "python -m claimctl.commands.schemas"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("kind", choices=models())
    kind = parser.parse_args(arguments).kind
    print_whole(json.dumps(schema(models()[kind]), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
