"""One model for each kind of ``cli.claimctl.io/v1alpha1``. Only these fields are printed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

API_VERSION = "cli.claimctl.io/v1alpha1"


class Part(BaseModel):
    """A part of a document. Unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Document(Part):
    api_version: Literal["cli.claimctl.io/v1alpha1"]


class Reference(Part):
    """An entry of a claim's list (status.reservedFor)."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class WorkloadRef(Part):
    api_group: str = ""
    kind: str
    name: str


class Problem(Part):
    """A reason with a sentence."""

    reason: str
    message: str


class Blocker(Problem):
    """Why something cannot be done now; afterSeconds is there if time alone ends it."""

    after_seconds: float | None = None


class References(Part):
    """How many entries the claim's list has, by kind."""

    pods: int
    finished_pods: int
    pods_listed_ahead: int
    workloads: list[Reference]
    limit: int


class Consumers(Part):
    """How many pods use the claim, listed or not."""

    bound: int
    pending: int


class Claim(Part):
    namespace: str
    name: str
    uid: str
    state: Literal["Pending", "Held", "InUse", "Allocated", "Releasing", "Deleting"]
    devices: list[str] = Field(description="pool/device")
    nodes: list[str]
    references: References
    consumers: Consumers
    reservations: list[str] = Field(description="names of ClaimReservations")
    retention_policies: list[str]
    creation_timestamp: str | None
    age_seconds: int | None


class ClaimList(Document):
    """``claimctl get``"""

    kind: Literal["ClaimList"]
    items: list[Claim]


class Condition(Part):
    type: str
    status: str
    reason: str
    message: str


class Reservation(Part):
    name: str
    workload_ref: WorkloadRef
    retention_policy: str
    action: Literal["Hold", "Release", "None"] = Field(
        description="what the ClaimReservation asks for"
    )
    reason: str
    message: str
    after_seconds: float | None
    conditions: list[Condition]


class TimedBlocker(Blocker):
    until: str | None = Field(
        default=None, description="when time will have ended it, by the controller's clock"
    )


class Release(Part):
    under_way: str | None = Field(description="the reason of a release that has begun")
    possible: bool
    blockers: list[TimedBlocker]


class Orphan(Part):
    reason: str
    message: str
    blockers: list[Problem]


class Unreadable(Part):
    kind: str
    namespace: str
    name: str
    message: str


class Trouble(Part):
    reason: str
    reservation: str
    message: str


class ControllerSigns(Part):
    state: Literal["Acting", "NotActing", "Unknown"]
    message: str
    degraded: bool
    troubles: list[Trouble]


class ClaimExplanation(Document):
    """``claimctl explain CLAIM``. Of a claim that cannot be read there is ``unreadable`` alone."""

    kind: Literal["ClaimExplanation"]
    claim: Claim | None = None
    reservations: list[Reservation] = []
    release: Release | None = None
    asked: list[str] = Field(default=[], description="workloads whose annotation asks for a hold")
    device_notes: list[str] = Field(
        default=[], description="what drivers report about its devices, and their taints"
    )
    orphan: Orphan | None = None
    unreadable: list[Unreadable]
    left_alone: bool = True
    controller: ControllerSigns | None = None
    advice: list[str]


class UsedClaim(Part):
    entry: str = Field(description="the name in the pod's spec.resourceClaims")
    name: str | None = Field(description="null while a generated claim is not made")
    state: str | None
    devices: list[str]
    problem: str | None


class Rival(Part):
    """Another claim that has devices of the classes that the pod waits for."""

    namespace: str
    name: str
    devices: list[str]
    holders: str
    idle: bool


class ExplainedPod(Part):
    namespace: str
    name: str
    workload: str | None = Field(description="kind/name")
    state: Literal["Waiting", "Starting", "Running", "Ending", "Succeeded", "Failed"]
    node: str | None
    reasons: list[Problem]
    claims: list[UsedClaim]
    rivals: list[Rival]
    advice: list[str]


class PodExplanation(Document, ExplainedPod):
    """``claimctl explain pod/NAME``"""

    kind: Literal["PodExplanation"]


class ShortClaim(Part):
    name: str
    state: str
    devices: list[str]


class WorkloadExplanation(Document):
    """``claimctl explain deployment/NAME``, and of a StatefulSet or a Job"""

    kind: Literal["WorkloadExplanation"]
    namespace: str
    workload_ref: WorkloadRef
    phase: str
    wants: int
    pods: Consumers
    annotation: str | None = Field(description="the value of claimctl.io/reserve")
    problems: list[Problem]
    reservations: list[str]
    claims: list[ShortClaim]
    missing_claims: list[str]
    waiting: list[ExplainedPod]
    advice: list[str]


class ReasonExplanation(Document):
    """``claimctl explain reason/NAME``"""

    kind: Literal["ReasonExplanation"]
    reason: str
    topic: str
    meaning: str
    remedy: str


class Check(Part):
    check: str
    message: str
    namespace: str
    object: str
    verdict: Literal["ok", "fact", "unknown", "problem"]


class LeaseState(Part):
    state: Literal["Acting", "NotActing", "Unknown"]
    message: str


class Diagnosis(Document):
    """``claimctl doctor``"""

    kind: Literal["Diagnosis"]
    dialect: Literal["native", "podgroup", "hold"] | None
    reasons: list[str]
    kubernetes_version: str
    served_versions: dict[str, list[str]]
    controller: LeaseState
    checks: list[Check]
    findings: list[Check] = Field(description="the checks with the verdict problem")


class ControllerImage(Part):
    namespace: str
    deployment: str
    images: list[str]
    ready: int
    wanted: int


class Skew(Part):
    verdict: Literal["None", "Different", "Unknown"]
    message: str


class ServerVersion(Part):
    kubernetes: str
    served_versions: dict[str, list[str]]
    crds_from: str | None
    controller: ControllerImage | None
    lease: LeaseState
    dialect: str | None
    skew: Skew


class Version(Document):
    """``claimctl version``"""

    kind: Literal["Version"]
    claimctl: str
    python: str
    server: ServerVersion | None


class ReleaseRequest(Document):
    """``claimctl release``"""

    kind: Literal["ReleaseRequest"]
    dry_run: bool
    namespace: str
    name: str
    uid: str
    reservations: list[str] = Field(description="names of the ClaimReservations that are asked")
    blockers: list[Blocker] = Field(description="what the release waits for")
    troubles: list[Trouble] = Field(description="why no controller acts on it now")


class OrphanClaim(Part):
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    reserved_for: list[Reference]
    outcome: str
    blockers: list[Problem]
    error: str


class OrphanList(Document):
    """``claimctl orphans``"""

    kind: Literal["OrphanList"]
    dry_run: bool
    items: list[OrphanClaim]


class DowngradedClaim(Part):
    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    pods: int
    workload_references: list[Reference]
    replaced_references: list[Reference]


class SkippedClaim(Part):
    namespace: str
    name: str


class DowngradeReport(Document):
    """``claimctl downgrade-prepare`` and ``downgrade-restore``"""

    kind: Literal["DowngradeReport"]
    dry_run: bool
    carried_out_by: str | None
    namespaces: list[str] = []
    claim_selector: str = ""
    skip: list[SkippedClaim] = []
    next_step: str | None = None
    phase: str
    total: int
    done: int
    claims: list[DowngradedClaim]


class Component(Part):
    component: str
    node: str
    feature: str
    now: str
    refuses: Any


class StandingClaim(Part):
    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    command: str
    pods: int
    unlisted: int


class DowngradeStatus(Document):
    """``claimctl downgrade-status``"""

    kind: Literal["DowngradeStatus"]
    step: str
    todo: str
    command: str
    clear: bool
    ready_claims: int
    components: list[Component]
    claims: list[StandingClaim]


class RemovedObject(Part):
    kind: str
    namespace: str
    name: str
    what: str


class LeftObject(Blocker):
    kind: str
    namespace: str
    name: str


class UninstallReport(Document):
    """``claimctl uninstall-prepare``"""

    kind: Literal["UninstallReport"]
    dry_run: bool
    namespaces: list[str]
    clean: bool
    removed: list[RemovedObject]
    left: list[LeftObject]
    notes: list[str]


class Span(Part):
    lane: str
    name: str
    state: str
    start: str
    end: str | None
    started_before: bool


class Mark(Part):
    at: str
    object: str
    reason: str
    message: str
    warning: bool


class ClaimTimeline(Document):
    """``claimctl timeline``"""

    kind: Literal["ClaimTimeline"]
    namespace: str
    claim: str
    begin: str
    end: str
    source: str
    notes: list[str]
    spans: list[Span]
    marks: list[Mark]


class TreeObject(Part):
    id: str = Field(description="kind/name")
    kind: str
    name: str
    state: str


class ClaimTree(Document):
    """``claimctl tree``"""

    kind: Literal["ClaimTree"]
    namespace: str
    objects: list[TreeObject]
    edges: list[dict[str, Any]]


class PodPlace(Part):
    """A pod and its node; node is '' without one."""

    namespace: str
    name: str
    uid: str
    node: str


class OwnerRef(Part):
    """The controller owner of a pod."""

    kind: str
    name: str
    uid: str


class PlannedMove(Part):
    """The eviction of one pod; destination is where the replacement is expected, if it is known.

    result is Planned, Allowed, Evicted or Left. landed and outcome say what became of the
    replacement.
    """

    pod: PodPlace
    strategy: str
    profile: str
    owner: OwnerRef | None
    destination: str
    unit: str
    why: str
    result: str
    reason: str
    detail: str
    landed: str
    outcome: str


class PlannedTaint(Part):
    """A taint that closes a node for a while."""

    node: str
    key: str
    value: str
    effect: str


class StayingPod(Part):
    """A pod that a strategy considered and does not move."""

    pod: PodPlace
    strategy: str
    profile: str
    reason: str
    detail: str


class CountedReason(Part):
    """How many pods a strategy does not move for this reason."""

    strategy: str
    reason: str
    pods: int


class HelpedPod(Part):
    """A pod for which others were evicted; result is Helped, Waits or Changed."""

    pod: PodPlace
    strategy: str
    result: str
    detail: str


class RescheduleRun(Document):
    """The answer of ``claimctl reschedule``; dryRun is '', client or server."""

    kind: Literal["RescheduleRun"]
    dry_run: str
    digest: str
    cluster_uid: Annotated[str, Field(alias="clusterUID")]
    made_at: str
    evicted: int
    moves: list[PlannedMove]
    helped: list[HelpedPod]
    taints: list[PlannedTaint]
    stayed: list[StayingPod]
    reasons: list[CountedReason]
    notes: list[str]
    failure: str
    interrupted: bool


class Violation(BaseModel):
    """A promise that the history of the API server shows to be broken."""

    model_config = ConfigDict(extra="forbid")

    rule: str
    revision: int
    namespace: str
    claim: str
    pods: list[str]
    message: str


class DemoStep(Part):
    name: str
    ok: bool
    dialect: Literal["native", "podgroup", "hold"]
    version: str
    pods: int | None = Field(description="pods that used the claim at the end of the step")
    references: int | None = Field(description="entries of the claim's list then")
    writes: int | None = Field(description="how often claimctl wrote the claim during the step")
    seconds: float
    message: str
    claim_revisions_per_second: int | None = None
    pending: int | None = Field(default=None, description="pods that found no place in the list")


class DemoReport(Document):
    """``claimctl demo``"""

    kind: Literal["DemoReport"]
    dialect: str = Field(description="the dialects that were played, with commas between")
    version: str = Field(description="the Kubernetes versions, with commas between")
    played_on: str
    ok: bool
    seconds: float
    steps: list[DemoStep]
    violations: int
    errors: list[str] = Field(description="errors inside the cluster itself")
    violation_details: list[Violation]


class PlayedClaim(Part):
    namespace: str
    name: str
    devices: list[str] = Field(description="pool/device")
    pods: list[str]
    most_pods_listed: int
    workloads: list[str]
    while_idle: str = Field(description="the hold while no pod used it; '' if never idle")
    allocated: bool = Field(description="whether it is allocated at the end")
    released_by: str
    reason: str
    not_reserved: str = Field(description="why claimctl did not reserve it, if it was asked to")


class DemoPlay(Document):
    """``claimctl demo -f``"""

    kind: Literal["DemoPlay"]
    dialect: Literal["native", "podgroup", "hold"]
    version: str
    claims: list[PlayedClaim]
    pending_pods: list[str]
    violations: int
    violation_details: list[Violation]


MODELS: dict[str, type[Document]] = {
    model.__name__: model
    for model in (
        *(ClaimList, ClaimExplanation, PodExplanation, WorkloadExplanation, ReasonExplanation),
        *(Diagnosis, Version, OrphanList, DowngradeReport, DowngradeStatus, UninstallReport),
        *(ClaimTimeline, ClaimTree, RescheduleRun, DemoReport, DemoPlay, ReleaseRequest),
    )
}
"""The models by the ``kind`` of the document."""


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a kind."""
    found = MODELS[kind].model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
