"""Print the JSON Schema of a kind of document: ``python -m claimctl.documents ClaimList``."""

from __future__ import annotations

import argparse
import json

from claimctl.documents.models import MODELS, schema


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m claimctl.documents", description=__doc__)
    parser.add_argument("kind", choices=MODELS)
    print(json.dumps(schema(parser.parse_args(arguments).kind), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
