"""Print the JSON Schema of a kind: ``python -m claimctl.commands.schemas ClaimList``."""

from __future__ import annotations

import argparse
import importlib
import json
from pkgutil import walk_packages

from claimctl import commands
from claimctl.cli.documents import Document, kind_of, schema
from claimctl.cli.extensions import extensions
from claimctl.cli.printer import print_whole


def models() -> dict[str, type[Document]]:
    """The documents by their kind: of all commands, and of the modules that extensions name."""
    own = (module.name for module in walk_packages(commands.__path__, f"{commands.__name__}."))
    of_extensions = (name for extension in extensions().values() for name in extension.documents)
    for name in (*own, *of_extensions):
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
