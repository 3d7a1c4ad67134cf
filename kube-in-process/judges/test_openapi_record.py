"""What is recorded of OpenAPI documents is what the cluster says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kube_in_process.http.documents.lookup import Documents
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

from judges.openapi_record import FILE, recorded

Recording = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def recording() -> Recording:
    """What would be recorded of the cluster itself."""
    features = Features()
    source = Documents(builtin_kinds(features), Schemas(lambda: features), lambda: features)
    served = {}
    for path in ("api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"):
        document = source.get(f"/openapi/v3/{path}", (), "")
        assert document is not None
        served[path] = json.loads(document.body)
    return recorded(served)


@pytest.mark.parametrize("part", ["texts", "enums", "required"])
def test_the_cluster_serves_what_was_recorded(recording: Recording, part: str) -> None:
    file: Recording = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(recording[part]) > 20
    assert recording[part].items() <= file[part].items()
