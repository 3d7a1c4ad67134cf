"""Workloads by the rules of their kinds: do they want pods now, perhaps later, or never again?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from msgspec import structs

from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.kinds.rules import Rule, Verdict, judge
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.reservation.remembered import Remembered
from claimctl.wire.base import encode
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod, PodTemplateSpec
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.resources import REPLICASETS, WORKLOADS
from claimctl.wire.workloads import (
    CustomWorkload,
    ReplicaSet,
    Workload,
    has_fixed_template,
    template_of,
    without_progress,
)

INJECT = "inject"
"""The value of the annotation that allows claimctl to change the workload's pod template."""


_RULES: Mapping[type[Any], Rule] = {
    resource.type: shipped_rules()[resource.group, resource.kind]
    for resource in (*WORKLOADS.values(), REPLICASETS)
}
"""The rules of the kinds that claimctl decodes into structs of their own."""


class JudgedWorkload(CustomWorkload, frozen=True, kw_only=True):
    """A workload with what its rule says about it, and without its spec and status."""

    verdict: Verdict = Verdict(idle=None, ended=None)
    rule: Rule = Rule("", "", "")


def judged(workload: CustomWorkload, rule: Rule) -> JudgedWorkload:
    """The workload under the rule. It keeps only those parts of the metadata that matter."""
    meta = workload.metadata
    verdict = judge(
        rule, encode({"metadata": meta, "spec": workload.spec, "status": workload.status})
    )
    slim = structs.replace(meta, annotations=own_annotations(meta) or None, labels=None)
    return JudgedWorkload(
        api_version=workload.api_version, kind=rule.kind, metadata=slim, verdict=verdict, rule=rule
    )


def own_annotations(meta: ObjectMeta) -> dict[str, str]:
    """The annotations of claimctl."""
    given = (meta.annotations or {}).items()
    return {key: value for key, value in given if key.startswith("claimctl.io/")}


def rule_for(workload: Workload | ReplicaSet) -> Rule:
    """The rule by which the workload is judged."""
    return workload.rule if isinstance(workload, JudgedWorkload) else _RULES[type(workload)]


def verdict_of(workload: Workload | ReplicaSet) -> Verdict:
    """What the rule of its kind says about the workload."""
    if isinstance(workload, JudgedWorkload):
        return workload.verdict
    if isinstance(workload, CustomWorkload):
        return Verdict(idle=None, ended=None, problem="no rule for its kind was applied")
    workload = without_progress(workload)
    document = {
        "metadata": _seen(workload.metadata),
        "spec": structs.replace(workload.spec, template=PodTemplateSpec()),
        "status": getattr(workload, "status", None),
    }
    return _shared_verdict((_RULES[type(workload)], encode(document)))


_shared_verdict: Remembered[tuple[Rule, bytes], Verdict] = Remembered(
    lambda asked: judge(*asked), most_bytes=8_000_000
)


def _seen(meta: ObjectMeta) -> ObjectMeta:
    """The metadata that a shipped rule may read. Most workloads have equal ones, and so share a
    verdict."""
    return ObjectMeta(generation=meta.generation, deletion_timestamp=meta.deletion_timestamp)


class WorkloadPhase(StrEnum):
    """Whether a workload wants pods, or what is known about that."""

    ACTIVE = "Active"
    """The workload wants pods."""
    IDLE = "Idle"
    """The workload wants no pods now and may want some later: it is scaled to 0 or suspended."""
    ENDED = "Ended"
    """The workload will create no more pods."""
    UNSEEN = "Unseen"
    """The cache lacks the workload; only a live read shows whether it is gone."""
    ABSENT = "Absent"
    """The API server has confirmed that the workload does not exist."""
    UNREADABLE = "Unreadable"
    """The workload exists and cannot be read."""
    UNKNOWN = "Unknown"
    """The rule of the kind does not say whether the workload wants pods, or claimctl cannot read
    the kind at all."""


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The state of one incarnation of a workload, or that none exists under the name."""

    phase: WorkloadPhase
    uid: str = ""
    wants: int = 0
    """The number of pods that the workload wants at the same time. 0 for an active workload: its
    rule does not say."""
    orphaned_replica_sets: tuple[str, ...] = ()
    """Names of ReplicaSets that may go on making pods after the workload is gone."""
    deleting: bool = False
    names_claim: bool = True
    """Whether the pod template names the claim by resourceClaimName."""
    pod_group: str = ""
    """The PodGroup that the pod template names, or else the pods; or ''."""
    fixed_template: bool = False
    """Whether the pod template can never change."""
    injects: bool = False
    """Whether the workload allows claimctl to put a PodGroup into its pod template."""
    confirmed: bool = False
    """Whether the workload was read live, and not from a cache."""
    pod_owners: frozenset[str] = frozenset()
    """UIDs of the objects that control this incarnation's pods: the workload itself, or the
    ReplicaSets of a Deployment."""
    by_pods: bool = False
    """Whether the pods say which claims the workload uses, because its pod template is not read."""
    root: str = ""
    """The UID of the incarnation whose children count; it may be gone."""
    children: tuple[str, ...] | None = ()
    """For a workload that is over: the objects that it made and that may make pods. None if they
    have not been listed live."""
    rule: Rule | None = None
    """For a workload that only a rule describes."""
    verdict: Verdict | None = None
    """What the rule says about this incarnation."""
    problem: str = ""
    """For UNREADABLE and UNKNOWN: what cannot be read, or why nothing can be said."""
    claim_over: bool = False
    """For a sticky claim: whether no new pod will name it again (see ``facts.ordinals``)."""

    @property
    def exists(self) -> bool:
        return bool(self.uid)

    @property
    def known(self) -> bool:
        """Whether it is known which incarnation exists, or that none does."""
        return self.exists or self.phase in (WorkloadPhase.ABSENT, WorkloadPhase.ENDED)

    @property
    def wants_nothing(self) -> bool:
        """Whether the workload is idle, or its pod template does not name the claim. Of one that
        is over, ``is_over`` and ``ended`` tell."""
        if self.phase is WorkloadPhase.UNKNOWN or self.children:
            return False
        return self.phase is WorkloadPhase.IDLE or not self.names_claim

    @property
    def ended(self) -> bool:
        """Whether it is over, and nothing that it made can make pods for it any more."""
        return self.is_over and self.children == ()

    @property
    def is_over(self) -> bool:
        """Whether the workload itself will make nothing any more."""
        return self.phase is WorkloadPhase.ENDED or (
            self.phase is WorkloadPhase.ABSENT and not self.orphaned_replica_sets
        )


def observe(
    workload: Workload, claim_name: str, replica_sets: Iterable[ReplicaSet] | None = None
) -> WorkloadState:
    """The state of a workload whose object exists.

    A finalizer may keep a workload that is being deleted for a long time. Its controller makes no
    pods then, so the rules call it idle. But the ReplicaSets of a deleted Deployment make pods
    until they are collected.

    Args:
        replica_sets: the ReplicaSets that may make pods with the claim; None if unknown.
    """
    verdict, uid = verdict_of(workload), workload.metadata.uid
    wants = _wants(verdict, unknown=0 if isinstance(workload, JudgedWorkload) else 1)
    idle, owners, by_pods = verdict.idle, frozenset((uid,)), isinstance(workload, CustomWorkload)
    if not by_pods and (REPLICASETS.group, REPLICASETS.kind) in rule_for(workload).children:
        owners = _controlled_by(uid, replica_sets or ())
        if workload.metadata.deleting and replica_sets is not None:
            idle = idle or not orphaned_replica_sets_of(uid, claim_name, replica_sets)
            wants = 0 if idle else wants
    phase = WorkloadPhase.IDLE if idle else WorkloadPhase.ACTIVE
    # an end that is certain counts whatever else is unknown
    if verdict.ended:
        phase = WorkloadPhase.ENDED
    elif verdict.ended is None or idle is None:
        phase = WorkloadPhase.UNKNOWN
    template = template_of(workload)
    return WorkloadState(
        phase=phase,
        uid=uid,
        wants=wants,
        deleting=workload.metadata.deleting,
        names_claim=by_pods or template_names(template, claim_name),
        pod_group=template.spec.group_name,
        fixed_template=has_fixed_template(workload),
        injects=workload.metadata.annotation(POD_GROUP_ANNOTATION) == INJECT,
        pod_owners=owners,
        by_pods=by_pods,
        rule=rule_for(workload) if by_pods else None,
        verdict=verdict if by_pods else None,
        problem=verdict.problem,
    )


def _controlled_by(uid: str, replica_sets: Iterable[ReplicaSet]) -> frozenset[str]:
    """UIDs of those ReplicaSets that the Deployment of this UID controls."""
    metas = (replica_set.metadata for replica_set in replica_sets)
    return frozenset(m.uid for m in metas if (owner := m.controller()) and owner.uid == uid)


def with_group_of_pods(state: WorkloadState, pods: Iterable[Pod]) -> WorkloadState:
    """The state with the PodGroup of the workload's pods, if the pod template names none: the Job
    controller sets that of a Job on the pods alone (WorkloadWithJob, KEP-5547)."""
    if state.pod_group or not state.pod_owners:
        return state
    names = {
        pod.spec.group_name
        for pod in pods
        if (owner := pod.metadata.controller()) and owner.uid in state.pod_owners
    }
    return replace(state, pod_group=min(filter(None, names), default=""))


def wanted_pods(workload: Workload | ReplicaSet) -> int:
    """The number of pods that may run at once; 1 if the rule of the kind does not say."""
    return _wants(verdict_of(workload), unknown=1)


def _wants(verdict: Verdict, *, unknown: int) -> int:
    if verdict.idle:
        return 0
    return unknown if verdict.pods is None else verdict.pods


def template_names(template: PodTemplateSpec, claim_name: str) -> bool:
    """Whether pods of this template name the claim. Generated claims do not count."""
    return claim_name in claim_names(Pod(spec=template.spec))


def named_claims(template: PodTemplateSpec) -> tuple[str, ...]:
    """The claims that a pod template names by resourceClaimName, in its order, each once."""
    names = [claim.resource_claim_name for claim in template.spec.resource_claims]
    return tuple(dict.fromkeys(name for name in names if name))


def orphaned_replica_sets_of(
    uid: str, claim_name: str, replica_sets: Iterable[ReplicaSet]
) -> tuple[str, ...]:
    """The ReplicaSets that go on making pods for the claim although their Deployment is gone:
    garbage collection is late, or cascade=orphan left them without a controller."""
    return tuple(
        sorted(
            replica_set.metadata.name
            for replica_set in replica_sets
            if wanted_pods(replica_set)
            and template_names(replica_set.spec.template, claim_name)
            and ((owner := replica_set.metadata.controller()) is None or owner.uid == uid)
        )
    )


def unknown_state(rule: Rule, problem: str) -> WorkloadState:
    """The state of a workload of which nothing can be said; it holds what it holds."""
    return WorkloadState(
        WorkloadPhase.UNKNOWN, confirmed=True, by_pods=True, rule=rule, problem=problem
    )


def custom_state(
    rule: Rule,
    workload: JudgedWorkload | None,
    makers: frozenset[str],
    held_for: tuple[str, ...],
    *,
    confirmed: bool,
) -> WorkloadState:
    """The state of a workload of a kind that can be read.

    Args:
        workload: None if there is none under the name.
        makers: the UIDs of the direct controllers of the pods that are under it and name the claim.
        held_for: the UIDs for which the claim is held also before a pod names it: of the
            incarnation that holds it, and of the reservation, which may name itself.
        confirmed: whether a live read has shown the workload, or that it is gone.
    """
    if workload is None:
        phase = WorkloadPhase.ABSENT if confirmed else WorkloadPhase.UNSEEN
        return WorkloadState(phase, by_pods=True, rule=rule)
    return replace(
        observe(workload, ""),
        confirmed=confirmed,
        names_claim=bool(makers) or workload.metadata.uid in held_for,
        pod_owners=makers,
    )


def with_children(
    rule: Rule, state: WorkloadState, recorded: str, left: tuple[str, ...] | str | None
) -> WorkloadState:
    """The state of a workload that is over, with the objects that it has made.

    Args:
        left: what a live LIST has shown; its problem; None if it was not made.
    """
    root = state.uid or recorded
    if not (state.is_over and root and rule.children):
        return state
    if isinstance(left, str):
        return replace(state, phase=WorkloadPhase.UNKNOWN, problem=left)
    return replace(state, root=root, children=left)
