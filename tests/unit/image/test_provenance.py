"""The provenance names the image, the commit and the locks."""

from __future__ import annotations

import hashlib
from pathlib import Path

from image.provenance import BuiltSource, make_statement


def test_it_says_what_was_made_of_what(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text("name==1\n")
    source = BuiltSource("c0ffee", 1_700_000_000, changed=True)
    statement = make_statement("claimctl:1", "sha256:abc", source, [lock])
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "claimctl:1", "digest": {"sha256": "abc"}}]
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {"sourceDateEpoch": 1_700_000_000}
    assert definition["internalParameters"] == {"uncommittedChanges": True}
    assert [each["digest"] for each in definition["resolvedDependencies"]] == [
        {"gitCommit": "c0ffee"},
        {"sha256": hashlib.sha256(b"name==1\n").hexdigest()},
    ]
    assert statement["predicate"]["runDetails"]["builder"]["id"]
