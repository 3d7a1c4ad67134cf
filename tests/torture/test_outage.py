"""An hour in which claimctl may write nothing, and the minutes after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from claimctl.embedded.requests import Fault, FaultPoint
from claimctl.telemetry.face import Metric
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE
from tests.support.telemetry import Recorder
from tests.support.virtual import run
from tests.torture.arena import Arena, Verdict, closed, judge, opened
from tests.torture.epilogue import conclude
from tests.torture.reference import LIMIT, dialects

HOUR = 3600.0
CLAIMS = 4
READS = frozenset({"get", "list", "watch"})
WRITES_OF_A_RELEASE = 20
"""Status, list, finalizer, annotations and Events of one release, by a wide margin."""


@dataclass
class Seen:
    """What an hour without writes looked like from outside."""

    requests: int = 0
    reasons: set[str] = field(default_factory=set)
    errors: int = 0
    writes_after: int = 0


def _writes(fault: Fault, *plurals: str) -> Callable[[FaultPoint], Fault | None]:
    def hook(point: FaultPoint) -> Fault | None:
        ours = point.user == CONTROLLER_USER and point.verb not in READS
        return fault if ours and (not plurals or point.plural in plurals) else None

    return hook


THROTTLED = _writes(Fault(status=429, retry_after=5))
REVOKED = _writes(Fault(status=403, reason="Forbidden"), "resourceclaims")


@pytest.mark.parametrize("dialect", sorted(dialects()))
@pytest.mark.parametrize("what", ["throttled", "partition", "revoked"])
def test_an_hour_without_writes_is_told_and_made_good_without_a_storm(
    dialect: str, what: str
) -> None:
    seen, verdict = Seen(), Verdict(f"{dialect} {what}")
    run(_hour(dialect, what, seen, verdict), limit=LIMIT)
    assert verdict.good, verdict
    assert seen.requests <= HOUR * CLAIMS / 2, seen
    assert seen.writes_after <= CLAIMS * WRITES_OF_A_RELEASE, seen
    if what == "revoked":
        assert "Forbidden" in seen.reasons
    if what != "partition":
        assert seen.errors


async def _hour(dialect: str, what: str, seen: Seen, verdict: Verdict) -> None:
    arena = await opened(dialects()[dialect])
    recorder = arena.telemetry = Recorder()
    try:
        process = arena.start()
        _held(arena)
        await arena.sleep(8.0)
        _begin(arena, what)
        before, errors = process.line.requests, _errors(recorder)
        for number in range(CLAIMS):
            patch = {"spec": {"replicas": 0}}
            arena.cluster.admin.patch("deployments", NAMESPACE, f"train-{number}", patch)
        await arena.sleep(HOUR)
        seen.requests = process.line.requests - before
        seen.errors = _errors(recorder) - errors
        seen.reasons = _reasons(arena)
        process.line.partitioned, arena.cluster.handler.fault = False, None
        since = arena.cluster.store.revision
        assert await arena.until(lambda: not arena.unreleased(), 400)
        history = arena.cluster.history(since)
        seen.writes_after = sum(each.actor == CONTROLLER_USER for each in history)
        await conclude(arena, verdict)
        judge(arena, verdict)
    finally:
        await closed(arena)


def _held(arena: Arena) -> None:
    """Deployments of which each holds a claim of its own."""
    admin = arena.cluster.admin
    admin.create("resourceclaimtemplates", manifests.claim_template())
    for number in range(CLAIMS):
        names = {"workload": f"train-{number}", "claim": f"slice-{number}"}
        spec: dict[str, Any] = {"idleTimeoutSeconds": 1, "forceDeletedPodGraceSeconds": 20}
        body = manifests.reservation(
            f"r-{number}", resourceClaimTemplateName="template", **names, **spec
        )
        admin.create("claimreservations", body)
        admin.create("deployments", manifests.deployment(names["workload"], 1, names["claim"]))


def _begin(arena: Arena, what: str) -> None:
    if what == "partition":
        arena.processes["one"].line.partitioned = True
    else:
        arena.cluster.handler.fault = THROTTLED if what == "throttled" else REVOKED


def _reasons(arena: Arena) -> set[str]:
    return {
        condition["reason"]
        for one in arena.objects("claimreservations")
        for condition in one.get("status", {}).get("conditions") or ()
    }


def _errors(recorder: Recorder) -> int:
    return sum(
        name is Metric.RECONCILE_SECONDS and labels.get("outcome") == "error"
        for name, labels, _ in recorder.metrics
    )
