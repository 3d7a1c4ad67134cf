"""The JSON Schemas of the documents that commands print, from the models."""

from __future__ import annotations

import json
from pathlib import Path

from claimctl.documents.models import MODELS, schema

FOLDER = Path("claimctl/documents/schemas")


def rendered() -> dict[Path, str]:
    """The text of each schema, by its path in the repository."""
    return {
        FOLDER / f"{kind}.json": json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in MODELS
    }
