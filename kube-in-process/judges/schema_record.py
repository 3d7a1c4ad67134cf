"""Records the fields of the built-in kinds, as the models of the official client have them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kube_in_process.schema import models

FILE = Path(models.__file__).with_name("models.json")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m judges schema-record", description=__doc__)
    parser.parse_args(arguments)
    names = recorded_names()
    lines = [line(name) for name in names]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(names)} models")
    return 0


def recorded_names() -> list[str]:
    """The models, without those of lists: a server writes a list by the schema of its items."""
    from kubernetes.client import models as of_client

    return [name for name in of_client.__all__ if not _is_list(name, of_client.__all__)]


def _is_list(name: str, names: Iterable[str]) -> bool:
    return name.endswith("List") and name.removesuffix("List") in names


def line(name: str) -> str:
    """One model: its description, its fields with types and descriptions, and the required ones."""
    from kubernetes.client import models as of_client

    model: Any = getattr(of_client, name)
    infos = {
        info.serialization_alias or attribute: info
        for attribute, info in model.model_fields.items()
    }
    fields = {
        field: [model.openapi_types[attribute], infos[field].description or ""]
        for attribute, field in model.attribute_map.items()
    }
    recorded = {
        "description": (model.__doc__ or "").split("Attributes:")[0].strip(),
        "required": [field for field, info in infos.items() if info.is_required()],
        "fields": fields,
    }
    return f"{json.dumps(name)}:{json.dumps(recorded, separators=(',', ':'), ensure_ascii=False)}"
