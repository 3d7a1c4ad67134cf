"""How an image was made: an in-toto Statement with the predicate https://slsa.dev/provenance/v1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:claimctl:image:v1"
"""Names the way of building. The project has no address on the web that could do so."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuiltSource:
    """What is built: the commit, its time in seconds since 1970, and if files differ from it."""

    commit: str
    time: int
    changed: bool


def make_statement(name: str, manifest: str, source: BuiltSource, locks: Iterable[Path]) -> Json:
    """What is said about the image with the digest ``manifest``."""
    commit = {"uri": "git+.", "digest": {"gitCommit": source.commit}}
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": manifest.removeprefix("sha256:")}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"sourceDateEpoch": source.time},
                "internalParameters": {"uncommittedChanges": source.changed},
                "resolvedDependencies": [commit, *(_locked(path) for path in locks)],
            },
            "runDetails": {"builder": {"id": f"{BUILD}:make"}},
        },
    }


def _locked(path: Path) -> Json:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"uri": f"file:{path.name}", "digest": {"sha256": digest}}
