"""What the commands and the metrics say of one state of a cluster."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from claimctl.commands.claims.claim_document import ClaimExplanation, explanation_of
from claimctl.commands.claims.claim_list import ClaimSummary, list_of
from claimctl.commands.claims.explanation import explain_with_controller
from claimctl.commands.claims.get_work import ClaimsWanted, gather
from claimctl.commands.claims.pod_document import PodExplanation, pod_of
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.workload_document import WorkloadExplanation, workload_of
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine
from claimctl.commands.doctor.model import CheckVerdict, Finding
from claimctl.commands.tree.graph import ClaimTree, document
from claimctl.commands.tree.work import read
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.discovery import use_served_versions
from claimctl.kube.errors import NotFound
from claimctl.telemetry.face import Labels, Metric, Telemetry
from labs.agreement.truth import ObservedObjects, name_of
from labs.torture.final_checks import OWN_BUSINESS
from labs.torture.testbed import Testbed
from tests.e2e.harness import NAMESPACE

TRIES = 8
"""How many times a state is asked for that changes while it is looked at."""


@dataclass
class Gauges(Telemetry):
    """The present values of the gauges that a controller exports."""

    values: dict[tuple[Metric, str], float] = field(default_factory=dict)

    def gauge(self, metric: Metric, value: float, labels: Labels | None = None) -> None:
        self.values[metric, (labels or {}).get("state", "")] = value

    def of(self, metric: Metric, state: str = "") -> int:
        return int(self.values.get((metric, state), 0))


@dataclass(frozen=True, slots=True)
class Answers:
    """The documents of all commands about the namespace, and the objects that they are about."""

    objects: ObservedObjects
    get: dict[str, ClaimSummary]
    explain: dict[str, ClaimExplanation]
    pods: dict[str, PodExplanation]
    workloads: dict[tuple[str, str], WorkloadExplanation]
    """By kind and name."""
    tree: ClaimTree
    doctor: tuple[Finding, ...]
    gauges: Gauges | None
    """None where no controller exports any."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What doctor reports: problems, and what waits."""
        told = (CheckVerdict.PROBLEM, CheckVerdict.WAITS)
        return tuple(finding for finding in self.doctor if finding.verdict in told)


class _StoppedClock(LoopClock):
    """A clock whose wall time stays as it is, so that all commands are asked at one moment."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._now = now

    def now(self) -> datetime:
        return self._now


async def ask(testbed: Testbed, gauges: Gauges | None = None) -> Answers | None:
    """Ask all commands about one state; None if the cluster changes again and again meanwhile."""
    for _ in range(TRIES):
        since = testbed.cluster.store.revision
        with suppress(NotFound):  # an object went while it was explained
            answers = await _ask(testbed, gauges)
            if not moved(testbed, since):
                return answers
    return None


def moved(testbed: Testbed, since: int) -> bool:
    """Whether something has been written but Leases and Events."""
    return any(each.plural not in OWN_BUSINESS for each in testbed.cluster.history(since))


async def _ask(testbed: Testbed, gauges: Gauges | None) -> Answers:
    objects = ObservedObjects.of(testbed)
    clock = _StoppedClock(objects.now)
    client = Client(testbed.cluster.transport(), clock)
    await use_served_versions(client)
    explained = {
        name: explanation_of(
            await explain_with_controller(client, NAMESPACE, name, clock), objects.now
        )
        for name in map(name_of, objects.claims)
    }
    seen = await gather(client, objects.now, ClaimsWanted(NAMESPACE))
    return Answers(
        objects=objects,
        get={item.name: item for item in list_of(seen, objects.now).items},
        explain=explained,
        pods={
            name: pod_of(await explain_pod(client, NAMESPACE, name, clock), PodExplanation)
            for name in map(name_of, objects.pods)
        },
        workloads={
            (kind, name): workload_of(await explain_workload(client, NAMESPACE, kind, name, clock))
            for kind, workloads in objects.workloads.items()
            for name in map(name_of, workloads)
        },
        tree=document(await read(client, NAMESPACE, objects.now), NAMESPACE),
        doctor=diagnosis(await examine(client, clock, namespace=NAMESPACE)),
        gauges=Gauges(dict(gauges.values)) if gauges is not None else None,
    )
