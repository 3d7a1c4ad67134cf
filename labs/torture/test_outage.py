"""An hour in which claimctl cannot write, and the minutes after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.requests import Fault, FaultPoint
from kube_in_process.virtual import run

from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.explanation import Explanation, explain_with_controller
from claimctl.kube.client import Client
from claimctl.telemetry.face import Metric
from labs.torture.final_checks import FinalChecks
from labs.torture.reference import LIMIT, dialects
from labs.torture.testbed import RunVerdict, Testbed, judge, opened
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE
from tests.support.explained import claim_lines
from tests.support.telemetry import Recorder

HOUR = 3600.0
CLAIMS = 4
MANY = 60
LATENCY = 0.2
"""Seconds that the server takes for every answer after the outage."""
BACK = 8.0
"""Seconds: the longest pause between retries, and the time for the work itself."""
AT_ONCE = 20
"""Concurrent requests: sixteen workers for claims, Events, and reads."""
RETRY_AFTER = 5
"""Seconds that a throttled request waits before it is sent again, as the server asks."""
RENEWALS = 0.5
"""Renewals of the Lease per second."""
READS = frozenset({"get", "list", "watch"})
WRITES_OF_A_RELEASE = 20
"""Upper limit of the writes of one release: status, list, finalizer, annotations, Events."""
LISTED = 14
"""Kinds that a controller watches; each is listed again at most once after the outage."""

PLAYED = (
    *(("throttled", "hold-1.36"), ("throttled", "podgroup")),
    *(("throttled-with-its-lease", "hold-1.34"), ("throttled-with-its-lease", "native")),
    *(("partition", "hold-1.36"), ("partition", "native")),
    *(("revoked", "hold-1.34"), ("revoked", "podgroup")),
)
"""Each outage in two dialects, and each dialect with two outages: how requests are repeated does
not depend on the dialect."""

Hook = Callable[[FaultPoint], Fault | None]


def _writes(fault: Fault, *plurals: str, but: str = "") -> Hook:
    def hook(point: FaultPoint) -> Fault | None:
        ours = point.user == CONTROLLER_USER and point.verb not in READS and point.plural != but
        return fault if ours and (not plurals or point.plural in plurals) else None

    return hook


def _cut(point: FaultPoint) -> Fault | None:
    return Fault(drop=True) if point.user == CONTROLLER_USER else None


@dataclass(frozen=True, slots=True)
class Outage:
    """One kind of outage, and what claimctl must report."""

    hook: Hook
    streams_break: bool = False
    signs: frozenset[str] = frozenset()
    """The signs that ``explain`` must show."""
    advice: str = ""
    error_metric: bool = False
    """Whether the metric counts errors of reconciles; otherwise ``claimctl_leader`` shows it."""


SLOW_DOWN = Fault(status=429, retry_after=RETRY_AFTER)
NOBODY, BEHIND, REFUSED = "NoControllerActing", "StatusBehind", "WritesRefused"
LOOK = "Look at the controller's pods and logs (kubectl -n claimctl-system get pods"
OUTAGES = {
    "throttled": Outage(
        _writes(SLOW_DOWN, but="leases"),
        signs=frozenset({BEHIND}),
        advice="429 is throttling",
        error_metric=True,
    ),
    "throttled-with-its-lease": Outage(
        _writes(SLOW_DOWN), signs=frozenset({NOBODY, BEHIND}), advice=LOOK
    ),
    "partition": Outage(_cut, streams_break=True, signs=frozenset({NOBODY, BEHIND}), advice=LOOK),
    "revoked": Outage(
        _writes(Fault(status=403, reason="Forbidden", message="no"), "resourceclaims"),
        signs=frozenset({REFUSED, "ReleaseStalled"}),
        advice="Grant the missing rights",
        error_metric=True,
    ),
}


@dataclass
class Traffic:
    """The controller's requests, counted on the server by verb and second."""

    testbed: Testbed
    latency: float = 0.0
    verbs: Counter[str] = field(default_factory=Counter)
    seconds: Counter[int] = field(default_factory=Counter)

    def __call__(self, point: FaultPoint) -> Fault | None:
        if point.user == CONTROLLER_USER and point.plural != "leases":
            self.verbs[point.verb] += 1
            self.seconds[int(self.testbed.cluster.clock.monotonic())] += 1
            return Fault(delay=self.latency)
        return None

    @property
    def peak(self) -> int:
        return max(self.seconds.values())


@dataclass
class SeenWithoutWrites:
    """What was visible during the hour without writes."""

    requests: int = 0
    reasons: set[str] = field(default_factory=set)
    errors: int = 0
    leading: bool = True
    broken: frozenset[str] = frozenset()
    """Resources whose watch is broken."""
    before: Explanation | None = None
    half: Explanation | None = None
    after: Explanation | None = None
    writes_after: int = 0
    traffic: Traffic | None = None


@pytest.mark.parametrize(("what", "dialect"), PLAYED)
def test_an_hour_without_writes_is_told_and_made_good_without_a_storm(
    what: str, dialect: str
) -> None:
    outage, seen = OUTAGES[what], SeenWithoutWrites()
    verdict = RunVerdict(f"{dialect} {what}")
    run(_hour(dialects()[dialect], outage, seen, verdict), limit=LIMIT)
    assert verdict.good, verdict
    # a process that is cut off tries each of its watches every five seconds, also without the Lease
    assert seen.requests <= HOUR * CLAIMS, seen.requests
    assert seen.writes_after <= CLAIMS * WRITES_OF_A_RELEASE, seen.writes_after
    _check_reports(outage, seen)
    assert seen.traffic is not None
    assert seen.traffic.verbs["list"] <= LISTED + CLAIMS * 2, seen.traffic.verbs


def _check_reports(outage: Outage, seen: SeenWithoutWrites) -> None:
    """Check that conditions, metrics and ``explain`` show the outage, and its end."""
    assert seen.before is not None
    assert seen.half is not None
    assert seen.after is not None
    assert not seen.before.troubles
    assert {str(trouble.sign) for trouble in seen.half.troubles} == outage.signs, claim_lines(
        seen.half
    )
    assert "Controller: degraded; " in "\n".join(claim_lines(seen.half))
    assert outage.advice in "\n".join(advice(seen.half))
    assert not any(line.startswith("Nothing") for line in advice(seen.half))
    assert not seen.after.troubles, claim_lines(seen.after)
    assert "Controller: acting; " in "\n".join(claim_lines(seen.after))
    assert ("Forbidden" in seen.reasons) == (REFUSED in outage.signs)
    assert (seen.errors > 0 and seen.leading) == outage.error_metric
    assert seen.leading == outage.error_metric
    assert bool(seen.broken) == outage.streams_break, seen.broken


@pytest.mark.parametrize("what", ["throttled", "partition"])
def test_many_reservations_come_back_no_faster_than_their_answers(what: str) -> None:
    """Few requests are sent at a time, so that a slow server is not overloaded."""
    seen, verdict = SeenWithoutWrites(), RunVerdict(what)
    options = replace(dialects()["hold-1.36"], devices_per_node=MANY // 2)
    run(_hour(options, OUTAGES[what], seen, verdict, MANY), limit=LIMIT)
    assert verdict.good, verdict
    assert seen.requests <= HOUR * (AT_ONCE / RETRY_AFTER + 2 * RENEWALS), seen.requests
    assert seen.writes_after <= MANY * WRITES_OF_A_RELEASE, seen.writes_after
    assert seen.traffic is not None
    assert seen.traffic.verbs["list"] <= LISTED + MANY, seen.traffic.verbs
    assert seen.traffic.peak <= AT_ONCE / LATENCY, seen.traffic.peak


@pytest.mark.parametrize("minutes", [1, 10, 60])
def test_however_long_it_was_cut_off_claimctl_follows_and_writes_again_within_seconds(
    minutes: int,
) -> None:
    assert run(_seconds_to_come_back(60.0 * minutes), limit=LIMIT) <= BACK


async def _seconds_to_come_back(seconds: float) -> float:
    """The seconds until every watch works again and every due write has been made."""
    async with opened(dialects()["hold-1.36"]) as testbed:
        recorder = testbed.telemetry = Recorder()
        testbed.start()
        _held(testbed, 1)
        assert await testbed.until(lambda: _reserved(testbed) == 1, 300)
        await testbed.sleep(60.0)
        _begin(testbed, OUTAGES["partition"])
        testbed.cluster.admin.patch("deployments", NAMESPACE, "train-0", {"spec": {"replicas": 0}})
        await testbed.cluster.clock.sleep(seconds)
        _end(testbed)
        since, ended = testbed.cluster.store.revision, testbed.cluster.clock.monotonic()

        def back() -> bool:
            actors = {revision.actor for revision in testbed.cluster.history(since)}
            return not _broken(recorder) and CONTROLLER_USER in actors

        assert await testbed.until(back, 300)
        return testbed.cluster.clock.monotonic() - ended


async def _hour(
    options: ClusterOptions,
    outage: Outage,
    seen: SeenWithoutWrites,
    verdict: RunVerdict,
    claims: int = CLAIMS,
) -> None:
    async with opened(options) as testbed:
        testbed.settings["leader_elect"] = True
        recorder = testbed.telemetry = Recorder()
        testbed.start()
        _held(testbed, claims)
        assert await testbed.until(lambda: _reserved(testbed) == claims, 300)
        await testbed.sleep(5.0)
        seen.before = await _explain(testbed)
        _begin(testbed, outage)
        requests, errors = _requests(testbed), _errors(recorder)
        for number in range(claims):
            patch = {"spec": {"replicas": 0}}
            testbed.cluster.admin.patch("deployments", NAMESPACE, f"train-{number}", patch)
        await _pass(testbed, HOUR / 2)
        seen.half = await _explain(testbed)
        await _pass(testbed, HOUR / 2)
        seen.requests = _requests(testbed) - requests
        seen.errors = _errors(recorder) - errors
        seen.leading = recorder.of(Metric.LEADER)[-1] == 1
        seen.broken = _broken(recorder)
        seen.reasons = _reasons(testbed)
        seen.traffic = _end(testbed)
        since = testbed.cluster.store.revision
        assert await testbed.until(lambda: not testbed.unreleased(), 400)
        await testbed.sleep(30.0)
        history = testbed.cluster.history(since)
        seen.writes_after = sum(
            revision.actor == CONTROLLER_USER and revision.plural != "leases"
            for revision in history
        )
        seen.after = await _explain(testbed)
        await FinalChecks(testbed, verdict).conclude()
        judge(testbed, verdict)


BACK_OFF = 300.0
"""Seconds of a kubelet's longest back-off for a container that ends at once."""


async def _pass(testbed: Testbed, seconds: float) -> None:
    """Let time pass; a controller that ends (Lease lost, no answer) is started again."""
    for _ in range(int(seconds / BACK_OFF)):
        await testbed.cluster.clock.sleep(BACK_OFF)
        await testbed.supervise()


def _held(testbed: Testbed, claims: int) -> None:
    """Create Deployments, each with a held claim of its own."""
    admin = testbed.cluster.admin
    admin.create("resourceclaimtemplates", manifests.claim_template())
    for number in range(claims):
        names = {"workload": f"train-{number}", "claim": f"slice-{number}"}
        spec: dict[str, Any] = {"idleTimeoutSeconds": 1, "forceDeletedPodGraceSeconds": 20}
        body = manifests.reservation(
            f"r-{number}", resourceClaimTemplateName="template", **names, **spec
        )
        admin.create("claimreservations", body)
        admin.create("deployments", manifests.deployment(names["workload"], 1, names["claim"]))


def _begin(testbed: Testbed, outage: Outage) -> None:
    testbed.cluster.handler.fault = outage.hook
    for process in testbed.processes.values():
        process.transport.partitioned = outage.streams_break


def _end(testbed: Testbed) -> Traffic:
    traffic = Traffic(testbed, LATENCY)
    testbed.cluster.handler.fault = traffic
    for process in testbed.processes.values():
        process.transport.partitioned = False
    return traffic


async def _explain(testbed: Testbed) -> Explanation:
    """Explain the claim as ``claimctl explain`` does, with a user's connection."""
    user = Client(testbed.cluster.transport(), testbed.cluster.clock)
    return await explain_with_controller(user, NAMESPACE, "slice-0", testbed.cluster.clock)


def _errors(recorder: Recorder) -> int:
    return sum(
        name is Metric.RECONCILE_SECONDS and labels.get("outcome") == "error"
        for name, labels, _ in recorder.metrics
    )


def _broken(recorder: Recorder) -> frozenset[str]:
    last = {
        labels["resource"]: value
        for name, labels, value in recorder.metrics
        if name is Metric.WATCH_BROKEN
    }
    return frozenset(resource for resource, value in last.items() if value)


def _requests(testbed: Testbed) -> int:
    transports = [*testbed.ended, *(process.transport for process in testbed.processes.values())]
    return sum(transport.requests for transport in transports)


def _conditions(testbed: Testbed) -> list[dict[str, Any]]:
    return [
        condition
        for reservation in testbed.objects("claimreservations")
        for condition in reservation.get("status", {}).get("conditions") or ()
    ]


def _reasons(testbed: Testbed) -> set[str]:
    return {condition["reason"] for condition in _conditions(testbed)}


def _reserved(testbed: Testbed) -> int:
    return sum(
        (condition["type"], condition["status"]) == ("Reserved", "True")
        for condition in _conditions(testbed)
    )
