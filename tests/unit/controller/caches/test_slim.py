"""What a kept claim holds on to."""

from __future__ import annotations

import json
import tracemalloc

from claimctl.controller.caches.slim import slim_claim
from claimctl.kube.codec import decode_page
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.wire_server import thing


def page() -> bytes:
    """One claim of interest and half a megabyte of other things."""
    claim = thing("c", 1)
    claim["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:spec": {}}}]
    rest = thing("rest", 2, unknown="x" * 500_000)
    return json.dumps({"metadata": {"resourceVersion": "3"}, "items": [claim, rest]}).encode()


def kept() -> ResourceClaim:
    return slim_claim(decode_page(RESOURCECLAIMS, page()).items[0])


def test_a_kept_claim_does_not_keep_the_page_it_came_in() -> None:
    kept()
    tracemalloc.start()
    try:
        claim = kept()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    (entry,) = claim.metadata.managed_fields
    assert (entry.manager, bytes(entry.fields_v1)) == ("m", b'{"f:spec": {}}')
