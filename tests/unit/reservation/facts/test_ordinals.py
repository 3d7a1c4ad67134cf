"""Which claim belongs to which ordinal, and who still wants it."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.reservation.facts.ordinals import (
    OrdinalFacts,
    asked_entries,
    claim_name,
    for_ordinal,
    is_superfluous,
    places_by_name,
    sticky_entries,
    waits_for_policy,
)
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState, observe
from claimctl.wire.ordinals import Ordinal, OrdinalWish, ordinal_wish, pod_name, wants_the_same
from claimctl.wire.pods import Pod, PodTemplateSpec
from claimctl.wire.reservations import (
    DELETE,
    RETAIN,
    ClaimReservationSpec,
    StickyClaim,
    WorkloadRef,
)
from claimctl.wire.workloads import (
    Deployment,
    Job,
    RollingUpdate,
    ScalableSpec,
    StatefulSet,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
    Workload,
)
from tests.support.builders import NOW
from tests.support.sticky_cases import (
    GROUPS,
    NAME,
    OWNER,
    SET,
    job,
    leader_worker_set,
    member,
    pod,
    stateful_set,
    template,
)


def test_a_pod_names_the_claim_of_its_ordinal() -> None:
    (entry,) = sticky_entries(pod())
    assert (entry.claim, entry.template, entry.ordinal) == (NAME, "big", Ordinal(2))
    assert (entry.workload, entry.owner) == (SET, OWNER)


@pytest.mark.parametrize("ordinal", [Ordinal(0, 0), Ordinal(0, 3), Ordinal(12, 0), Ordinal(12, 1)])
def test_a_pod_of_a_group_names_the_claim_of_its_place(ordinal: Ordinal) -> None:
    (entry,) = sticky_entries(member(ordinal.number, ordinal.member or 0))
    assert (entry.workload, entry.ordinal) == (GROUPS, ordinal)
    # its StatefulSet is a part of the workload, whose UID the pod does not name
    assert entry.owner is None


@pytest.mark.parametrize(
    ("ref", "ordinal", "made"),
    [
        (SET, Ordinal(2), pod()),
        (GROUPS, Ordinal(12, 0), member(12, 0)),
        (GROUPS, Ordinal(12, 1), member(12, 1)),
    ],
    ids=["StatefulSet", "leader", "worker"],
)
def test_a_pod_has_its_place_by_its_name_alone(
    ref: WorkloadRef, ordinal: Ordinal, made: Pod
) -> None:
    assert (ref, ordinal) in places_by_name(made)
    assert made.metadata.name == pod_name(ref.api_group, ref.kind, ref.name, ordinal)


@pytest.mark.parametrize(
    "made",
    [
        pod(name="other"),
        pod(owner=replace(OWNER, kind="Job")),
        pod(owner=replace(OWNER, controller=False)),
    ],
    ids=["of another name", "of another kind", "without a controller"],
)
def test_a_pod_without_a_number_or_a_stateful_set_has_no_place(made: Pod) -> None:
    assert list(places_by_name(made)) == []


def test_the_pods_of_other_kinds_have_other_names() -> None:
    assert pod_name("batch", "Job", "train", Ordinal(2)) == ""


@pytest.mark.parametrize(
    ("kind", "claim", "ordinal"),
    [
        ("CloneSet", "train-2.cloneset-apps-x--k8s-io.gpu.big", Ordinal(2)),
        ("Gang", "train-2-0.gang-apps-x--k8s-io.gpu.big", Ordinal(2, 0)),
    ],
)
def test_a_pod_of_a_kind_by_rule_names_the_claim_of_its_labels(
    kind: str, claim: str, ordinal: Ordinal
) -> None:
    owner = replace(OWNER, api_version="apps.x-k8s.io/v1", kind=kind)
    (entry,) = sticky_entries(pod(claim, owner=owner, name="train-abcde"))
    assert (entry.ordinal, entry.owner) == (ordinal, owner)


@pytest.mark.parametrize(
    "made",
    [
        pod(note=None),
        pod(note=""),
        pod(note="gpu"),
        pod(note="other=big"),
        pod(note="gpu=small"),
        pod("train-x.sts.gpu.big"),
        pod("train-02.sts.gpu.big"),
        pod("train-2.job.gpu.big"),
        pod("other-2.sts.gpu.big"),
        pod("train-.sts.gpu.big"),
        pod("train-99999999999.sts.gpu.big"),
        pod("train-².sts.gpu.big"),
        pod(owner=replace(OWNER, controller=False)),
        pod(owner=replace(OWNER, kind="ReplicaSet")),
        pod(owner=replace(OWNER, api_version="example.com/v1")),
        pod("train-2-1.sts.gpu.big"),
        member(2, 1, "train-2-0.lws.gpu.big"),
        member(2, 0, "train-2-1.lws.gpu.big"),
        member(2, 1, "train-1-1.lws.gpu.big"),
        member(2, 1, "train-2.lws.gpu.big"),
        pod("train-2-0.lws.gpu.big", owner=replace(OWNER, kind="Job")),
        pod("other-2-0.lws.gpu.big"),
    ],
)
def test_a_pod_is_not_believed_that_says_something_else_than_the_policy(made: Pod) -> None:
    assert list(sticky_entries(made)) == []


LABELS = st.from_regex("[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
TEMPLATES = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?(\.[a-z0-9]{1,3}){0,2}", fullmatch=True
)
KINDS = [
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("a.b.io", "Job"),
    ("a-b.io", "Job"),
    ("a.b-io", "Job"),
]
IN_GROUPS = {"LeaderWorkerSet"}
PARTS = st.tuples(
    st.sampled_from(KINDS), LABELS, st.integers(0, 3), st.integers(0, 2), LABELS, TEMPLATES
)


@given(PARTS, PARTS)
def test_no_two_ordinals_share_a_claim(one: tuple, other: tuple) -> None:  # type: ignore[type-arg]  # drawn
    def what(kind: tuple[str, str], *rest: object) -> tuple[WorkloadRef, Ordinal, str, str]:
        workload, number, member, entry, made = rest
        assert isinstance(number, int)
        assert isinstance(member, int)
        ref = WorkloadRef(api_group=kind[0], kind=kind[1], name=str(workload))
        ordinal = Ordinal(number, member if kind[1] in IN_GROUPS else None)
        return ref, ordinal, str(entry), str(made)

    same = what(*one) == what(*other)
    assert (claim_name(*what(*one)) == claim_name(*what(*other))) == same


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (template("*"), ["gpu"]),
        (template(" * "), ["gpu"]),
        (template("gpu, nic", ("gpu", "big"), ("nic", "fast"), ("disk", "nvme")), ["gpu", "nic"]),
        (template(None), []),
        (template(""), []),
        (template("*", group="train"), []),
        (template("gpu", group="train"), ["gpu"]),
    ],
)
def test_the_annotation_of_the_pod_template_says_which_entries(
    made: PodTemplateSpec, wanted: list[str]
) -> None:
    assert [entry.name for entry in asked_entries(made)] == wanted


def test_a_pod_that_no_policy_has_rewritten_waits_for_one() -> None:
    asked = template()
    bare = Pod(metadata=asked.metadata, spec=asked.spec)
    assert waits_for_policy(bare)
    assert not waits_for_policy(pod())
    assert not waits_for_policy(Pod(spec=asked.spec))


@pytest.mark.parametrize(
    ("workload", "ordinal", "wish"),
    [
        (stateful_set(), 2, OrdinalWish.YES),
        (stateful_set(), 3, OrdinalWish.NOT_NOW),
        (stateful_set(None), 0, OrdinalWish.YES),
        (stateful_set(None), 1, OrdinalWish.NOT_NOW),
        (stateful_set(0), 0, OrdinalWish.NOT_NOW),
        (stateful_set(start=5), 4, OrdinalWish.NOT_NOW),
        (stateful_set(start=5), 7, OrdinalWish.YES),
        (stateful_set(start=5), 8, OrdinalWish.NOT_NOW),
        (job(), 7, OrdinalWish.YES),
        (job(), 8, OrdinalWish.NOT_NOW),
        (job("1,3-5"), 2, OrdinalWish.YES),
        (job("1,3-5"), 4, OrdinalWish.NEVER),
        (job("1,3-5"), 1, OrdinalWish.NEVER),
        (job("", "0"), 0, OrdinalWish.NEVER),
        (job("nonsense,2"), 2, OrdinalWish.NEVER),
    ],
)
def test_whether_an_ordinal_is_wanted(
    workload: StatefulSet | Job, ordinal: int, wish: OrdinalWish
) -> None:
    assert ordinal_wish(workload, ordinal) is wish


def test_a_large_job_costs_little_memory_with_every_pod_that_ends() -> None:
    ended = ",".join(map(str, range(0, 1_000, 2)))
    tracemalloc.start()
    for last in range(1_000, 1_080, 2):
        ended += f",{last}"
        ordinal_wish(job(ended, completions=1_100), 1)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 500_000
    wishes = [ordinal_wish(job(ended, completions=1_100), ordinal) for ordinal in range(1_100)]
    assert wishes.count(OrdinalWish.NEVER) == 540


def test_what_certainly_wants_the_same_ordinals() -> None:
    assert wants_the_same(stateful_set(), stateful_set(sticky=None))
    assert not wants_the_same(stateful_set(), stateful_set(4))
    assert not wants_the_same(stateful_set(), stateful_set(start=1))
    assert not wants_the_same(job(), job("1"))
    assert not wants_the_same(rolling(1), rolling(2))
    assert not wants_the_same(rolling(1), rolling(1, current="b"))


def state(
    workload: Workload | None,
    ordinal: int = 0,
    claim: str = "",
    when_scaled: str = RETAIN,
    when_deleted: str = DELETE,
) -> WorkloadState:
    """The state of the workload for the claim of an ordinal."""
    ref = replace(SET, kind="Job", api_group="batch") if isinstance(workload, Job) else SET
    spec = ClaimReservationSpec(
        resource_claim_name=claim or claim_name(ref, Ordinal(ordinal), "gpu", "big"),
        workload_ref=ref,
        sticky=StickyClaim(ordinal=ordinal, when_scaled=when_scaled, when_deleted=when_deleted),
    )
    whole = WorkloadState(WorkloadPhase.ABSENT) if workload is None else observe(workload, "")
    return for_ordinal(whole, workload, spec)


@pytest.mark.parametrize(
    ("made", "phase", "names_claim", "over"),
    [
        (state(stateful_set(), 2), WorkloadPhase.ACTIVE, True, False),
        # scaled below it
        (state(stateful_set(), 3), WorkloadPhase.IDLE, True, False),
        (state(stateful_set(), 3, when_scaled=DELETE), WorkloadPhase.IDLE, True, True),
        (state(stateful_set(0), 0), WorkloadPhase.IDLE, True, False),
        # its index has ended
        (state(job("0"), 0), WorkloadPhase.IDLE, True, True),
        # the pod template asks for another claim, or for none
        (state(stateful_set(), 2, f"{NAME}.old"), WorkloadPhase.ACTIVE, False, True),
        (state(stateful_set(sticky=None), 2), WorkloadPhase.ACTIVE, False, True),
        # the workload is gone
        (state(None, 2), WorkloadPhase.ABSENT, True, True),
        (state(None, 2, when_deleted=RETAIN), WorkloadPhase.IDLE, True, False),
        # another release of claimctl has written what this one does not know
        (state(stateful_set(), 3, when_scaled="Perhaps"), WorkloadPhase.IDLE, True, False),
    ],
)
def test_the_state_of_a_workload_for_one_ordinal(
    made: WorkloadState, phase: WorkloadPhase, names_claim: bool, over: bool
) -> None:
    assert (made.phase, made.names_claim, made.claim_over) == (phase, names_claim, over)


def rolling(partition: int, current: str = "a", observed: int = 2, start: int = 0) -> StatefulSet:
    """A StatefulSet that asks for other claims now, while a rolling update is under way."""
    made = stateful_set(start=start)
    strategy = StatefulSetUpdateStrategy(rolling_update=RollingUpdate(partition=partition))
    spec = replace(made.spec, update_strategy=strategy, template=template("*", ("gpu", "other")))
    status = StatefulSetStatus(
        observed_generation=observed, current_revision=current, update_revision="b"
    )
    metadata = replace(made.metadata, generation=2)
    return replace(made, metadata=metadata, spec=spec, status=status)


@pytest.mark.parametrize(
    ("workload", "ordinal", "over"),
    [
        (rolling(2), 1, False),
        (rolling(2), 2, True),
        (rolling(2, start=1), 2, False),
        (rolling(2, start=1), 3, True),
        # no pod has the earlier template any more
        (rolling(2, current="b"), 1, True),
        # the StatefulSet's controller has not seen the new template yet
        (rolling(2, current="b", observed=1), 1, False),
    ],
)
def test_below_the_partition_of_a_rolling_update_an_ordinal_keeps_its_claim(
    workload: StatefulSet, ordinal: int, over: bool
) -> None:
    made = state(workload, ordinal)
    assert (made.claim_over, made.names_claim) == (over, not over)


def test_an_ordinal_of_a_kind_without_ordinals_says_nothing() -> None:
    ref = WorkloadRef(api_group="apps", kind="Deployment", name="train")
    spec = ClaimReservationSpec(workload_ref=ref, sticky=StickyClaim(ordinal=0))
    workload = Deployment(spec=ScalableSpec(template=template()))
    whole = observe(workload, "")
    assert for_ordinal(whole, workload, spec) == whole
    assert not is_superfluous(workload, spec)


def in_group(
    workload: Workload,
    part: StatefulSet | None = None,
    group: int = 1,
    member: int = 1,
    when_scaled: str = RETAIN,
) -> WorkloadState:
    """The state of a LeaderWorkerSet for the claim of one of its pods."""
    ordinal = Ordinal(group, member)
    spec = ClaimReservationSpec(
        resource_claim_name=claim_name(GROUPS, ordinal, "gpu", "big"),
        workload_ref=GROUPS,
        sticky=StickyClaim(ordinal=group, member=member, when_scaled=when_scaled),
    )
    return for_ordinal(observe(workload, ""), workload, spec, OrdinalFacts(part=part))


def workers(count: int = 1, sticky: str | None = "*") -> StatefulSet:
    """The StatefulSet of the workers of a group."""
    return stateful_set(count, start=1, sticky=sticky)


@pytest.mark.parametrize(
    ("made", "phase", "wants", "over"),
    [
        (in_group(leader_worker_set()), WorkloadPhase.ACTIVE, 1, False),
        (in_group(leader_worker_set(idle=True)), WorkloadPhase.IDLE, 0, False),
        # its group is scaled away, or its place in the group
        (in_group(leader_worker_set(1)), WorkloadPhase.IDLE, 0, False),
        (in_group(leader_worker_set(2, 1)), WorkloadPhase.IDLE, 0, False),
        (in_group(leader_worker_set(1), when_scaled=DELETE), WorkloadPhase.IDLE, 0, True),
        # the rule says nothing of them
        (in_group(leader_worker_set(None, None), group=9), WorkloadPhase.ACTIVE, 1, False),
        # an update has a group more for a while, or has not reached a larger one
        (
            in_group(leader_worker_set(1), stateful_set(2), member=0, when_scaled=DELETE),
            *(WorkloadPhase.ACTIVE, 1, False),
        ),
        (
            in_group(leader_worker_set(2, 1), workers(), when_scaled=DELETE),
            *(WorkloadPhase.ACTIVE, 1, False),
        ),
        # the StatefulSet of its pods asks for this claim, for none, or for none above the partition
        (in_group(leader_worker_set(), workers()), WorkloadPhase.ACTIVE, 1, False),
        (in_group(leader_worker_set(), workers(sticky=None)), WorkloadPhase.ACTIVE, 1, True),
        (
            in_group(leader_worker_set(), rolling(2), member=0),
            *(WorkloadPhase.ACTIVE, 1, False),
        ),
        (
            in_group(leader_worker_set(), rolling(1), member=0),
            *(WorkloadPhase.ACTIVE, 1, True),
        ),
    ],
)
def test_the_state_of_a_workload_in_groups_for_one_ordinal(
    made: WorkloadState, phase: WorkloadPhase, wants: int, over: bool
) -> None:
    assert (made.phase, made.wants, made.claim_over) == (phase, wants, over)


def of_gang(*claims: str, deleting: bool = False) -> WorkloadState:
    """The state of a workload by rule for the claim of the template big, whose ordinal has pods
    with these claims."""
    gang = WorkloadRef(api_group="x.io", kind="Gang", name="train")
    spec = ClaimReservationSpec(
        resource_claim_name=claim_name(gang, Ordinal(1), "gpu", "big"),
        workload_ref=gang,
        sticky=StickyClaim(ordinal=1),
    )
    pods = tuple(pod(claim) for claim in claims)
    if deleting:
        pods = tuple(
            replace(each, metadata=replace(each.metadata, deletion_timestamp=NOW)) for each in pods
        )
    workload = leader_worker_set(2, None)
    return for_ordinal(observe(workload, ""), workload, spec, OrdinalFacts(pods=pods))


def test_the_present_pod_of_a_kind_by_rule_says_which_claim_its_ordinal_has() -> None:
    big, other = (f"train-1.gang-x-io.gpu.{template}" for template in ("big", "other"))
    assert not of_gang().claim_over
    assert not of_gang(big).claim_over
    assert of_gang(other).claim_over
    assert not of_gang(other, deleting=True).claim_over


def test_an_ordinal_wants_one_pod() -> None:
    assert (state(stateful_set(), 2).wants, state(stateful_set(), 3).wants) == (1, 0)
