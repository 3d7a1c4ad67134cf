"""What ``-o json`` prints of a document, read again."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from claimctl.cli.documents import API_VERSION, Document, Part, plain
from claimctl.commands.schemas import models

MODELS = models()


def as_json(part: Part) -> Any:
    """The document or a part of one, as a program reads it."""
    shown = plain(part) if isinstance(part, Document) else msgspec.to_builtins(part)
    return checked(json.loads(json.dumps(shown)))


def checked(document: Any) -> Any:
    """The document, which has exactly the fields of its schema if it is one of claimctl's."""
    if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
        model = MODELS.get(document["kind"])
        if model is not None:
            fields = {key: value for key, value in document.items() if key != "apiVersion"}
            msgspec.convert(fields, model)
    return document
