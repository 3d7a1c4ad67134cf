"""The judge finds each way to lose a device, and believes the reasons that users give."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.storage.store import Revision

from labs.sticky.judge import StickyJudge
from labs.sticky.leaders import SET_NAME
from labs.sticky.wishes import PodPlace, StickyPlace, Wish, Wishes
from labs.torture.faulty_transport import ClaimDeletion

CLAIMCTL, KCM, USER = "system:serviceaccount:x:claimctl", "system:kcm", "user"
NAME = "train-1.sts.gpu.big"
PLACE = StickyPlace(PodPlace("sts", "train", 1), "gpu", "big")
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train", "uid": "set"}
HOLD = {"apiGroup": "apps", "resource": "statefulsets", "name": "train", "uid": "set"}
Body = dict[str, Any]


class ToldHistory:
    """A history that is told revision by revision, and its judge."""

    def __init__(self) -> None:
        self.judge = StickyJudge({CLAIMCTL})
        self._last: dict[tuple[str, str], bytes] = {}
        self._number = 0

    def tell(
        self, at: float, group: str, plural: str, body: Body | str, actor: str = USER
    ) -> ToldHistory:
        """An object as it is written, or the name of one that is deleted."""
        self._number += 1
        gone = isinstance(body, str)
        name = body if isinstance(body, str) else body["metadata"]["name"]
        before = self._last.pop((plural, name), None)
        data = before if isinstance(body, str) else json.dumps(body).encode()
        assert data is not None
        if not gone:
            self._last[plural, name] = data
        kind = "DELETED" if gone else "MODIFIED" if before else "ADDED"
        verb = "delete" if gone else "update" if before else "create"
        self.judge.world.apply(
            Revision(
                self._number, kind, group, plural, "default", name, data, before, actor, verb, at
            )
        )
        return self

    def workload(
        self, at: float, replicas: int, template: str = "big", **notes: str
    ) -> ToldHistory:
        named = {f"claimctl.io/{name.replace('_', '-')}": value for name, value in notes.items()}
        meta = {"name": "train", "namespace": "default", "uid": "set", "annotations": named}
        entry = {"name": "gpu", "resourceClaimTemplateName": template}
        pod = {"metadata": {"annotations": {"claimctl.io/sticky": "*"}}}
        spec = {"replicas": replicas, "template": {**pod, "spec": {"resourceClaims": [entry]}}}
        return self.tell(at, "apps", "statefulsets", {"metadata": meta, "spec": spec})

    def claim(
        self,
        at: float,
        device: str,
        *listed: Body,
        actor: str = KCM,
        name: str = NAME,
        deleting: bool = False,
        reserved_for: str = "",
    ) -> ToldHistory:
        result = {"driver": "gpu", "pool": "node-0", "device": device, "request": "gpu"}
        allocation = {"allocation": {"devices": {"results": [result]}}} if device else {}
        meta = {"name": name, "namespace": "default", "uid": "claim"}
        meta["resourceVersion"] = str(self._number + 1)
        if deleting:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"reservedFor": {**HOLD, "uid": reserved_for}} if reserved_for else {}
        body = {"metadata": meta, "spec": spec, "status": {**allocation, "reservedFor": [*listed]}}
        return self.tell(at, "resource.k8s.io", "resourceclaims", body, actor)

    def pod(self, at: float, node: str = "", index: str = "1", **entry: str) -> ToldHistory:
        meta: Body = {
            "name": "train-1",
            "namespace": "default",
            "uid": "pod",
            "labels": {"apps.kubernetes.io/pod-index": index},
            "annotations": {"claimctl.io/sticky": "*", "claimctl.io/sticky-claims": "gpu=big"},
            "ownerReferences": [{**OWNER, "controller": True}],
        }
        entries = [{"name": "gpu", **(entry or {"resourceClaimName": NAME})}]
        spec = {"resourceClaims": entries, **({"nodeName": node} if node else {})}
        return self.tell(at, "", "pods", {"metadata": meta, "spec": spec, "status": {}})

    def reservation(self, at: float, *, deleting: bool = False) -> ToldHistory:
        meta = {"name": "r", "namespace": "default", "uid": "r"}
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
        body = {"metadata": meta, "spec": {"resourceClaimName": NAME}}
        return self.tell(at, "claimctl.io", "claimreservations", body)

    def groups(
        self, at: float, replicas: int, size: int, template: str = "big", **notes: str
    ) -> ToldHistory:
        named = {f"claimctl.io/{name.replace('_', '-')}": value for name, value in notes.items()}
        meta = {"name": "train", "namespace": "default", "uid": "set", "annotations": named}
        entry = {"name": "gpu", "resourceClaimTemplateName": template}
        pods = {"metadata": {"annotations": {"claimctl.io/sticky": "*"}}}
        group = {"size": size, "workerTemplate": {**pods, "spec": {"resourceClaims": [entry]}}}
        spec = {"replicas": replicas, "leaderWorkerTemplate": group}
        body = {"metadata": meta, "spec": spec}
        return self.tell(at, "leaderworkerset.x-k8s.io", "leaderworkersets", body)

    def member(self, at: float, uid: str, template: str | None = "big") -> ToldHistory:
        """The second pod of the second group, with a sticky claim or a generated one."""
        named = f"train-1-1.lws.gpu.{template}"
        meta: Body = {
            "name": "train-1-1",
            "namespace": "default",
            "uid": uid,
            "labels": {"apps.kubernetes.io/pod-index": "1", SET_NAME: "train"},
            "annotations": {"claimctl.io/sticky": "*"} if template else {},
            "ownerReferences": [{**OWNER, "name": "train-1", "controller": True}],
        }
        entry = {"resourceClaimName": named} if template else {"resourceClaimTemplateName": "big"}
        spec = {"resourceClaims": [{"name": "gpu", **entry}]}
        return self.tell(at, "", "pods", {"metadata": meta, "spec": spec, "status": {}})


def held(**notes: str) -> ToldHistory:
    """A StatefulSet of two whose second ordinal has run on a device that is held."""
    story = ToldHistory().workload(0, 2, **notes).claim(1, "").pod(1)
    return story.claim(2, "dev-0", HOLD).pod(3, "node-0")


def test_a_device_that_goes_without_a_reason_is_found() -> None:
    story = held().tell(50, "", "pods", "train-1").claim(60, "")
    [text] = story.judge.violations
    assert text.startswith(f"{NAME} lost [('node-0', 'dev-0')] at t=60.000 by kcm")


def test_another_device_at_the_next_pod_is_found() -> None:
    story = held().tell(50, "", "pods", "train-1").claim(60, "dev-1", HOLD)
    assert len(story.judge.violations) == 1


def test_a_pod_that_comes_back_is_counted() -> None:
    story = held().tell(50, "", "pods", "train-1").pod(51).pod(52, "node-0")
    assert story.judge.violations == []
    assert story.judge.counts["pods that came back to their device"] == 1


@pytest.mark.parametrize(
    ("reason", "story"),
    [
        ("scaled", held(when_scaled="Delete").workload(100, 1, when_scaled="Delete")),
        ("another template", held().workload(100, 2, template="other")),
        ("gone", held().tell(100, "apps", "statefulsets", "train")),
        ("idle", held(idle_timeout_seconds="5").workload(90, 1, idle_timeout_seconds="5")),
        ("broken device", held().tell(99, "resource.k8s.io", "resourceslices", {
            "metadata": {"name": "s"},
            "spec": {
                "pool": {"name": "node-0"},
                "devices": [{"name": "dev-0", "taints": [{"key": "broken"}]}],
            },
        })),
        ("reservation deleted", held().tell(98, "claimctl.io", "claimreservations", {
            "metadata": {"name": "r"}, "spec": {"resourceClaimName": NAME},
        }).tell(99, "claimctl.io", "claimreservations", "r")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_reason_that_users_or_devices_give_is_believed(reason: str, story: ToldHistory) -> None:
    story.claim(101, "", actor=CLAIMCTL)
    assert story.judge.violations == []
    assert story.judge.counts[f"devices given up: {reason}"] == 1


@pytest.mark.parametrize(
    "notes",
    [{"retention_policy": "Persistent"}, {"idle_timeout_seconds": "60"}],
    ids=["persistent", "too early"],
)
def test_the_device_of_an_ordinal_that_is_scaled_away_is_kept(notes: dict[str, str]) -> None:
    story = held(**notes).workload(90, 1, **notes).claim(101, "", actor=CLAIMCTL)
    assert len(story.judge.violations) == 1


def test_a_hold_that_goes_for_a_reason_explains_the_loss_later() -> None:
    story = held().workload(100, 2, template="other").claim(101, "dev-0", actor=CLAIMCTL)
    story.workload(110, 2).claim(300, "")
    assert story.judge.violations == []


@pytest.mark.parametrize(("scaled", "found"), [("Delete", 0), ("Retain", 1)])
def test_a_claim_that_is_deleted_for_a_reason_loses_its_device_at_any_time_later(
    scaled: str, found: int
) -> None:
    notes = {"when_scaled": scaled, "retention_policy": "Persistent"}
    story = held(**notes).tell(50, "", "pods", "train-1").workload(90, 1, **notes)
    story.claim(95, "dev-0", HOLD, actor=CLAIMCTL, deleting=True).workload(110, 2, **notes)
    story.claim(400, "", actor=CLAIMCTL, deleting=True)
    assert len(story.judge.violations) == found


def test_what_was_over_before_the_workload_went_stays_over() -> None:
    notes = {"when_scaled": "Delete", "when_deleted": "Retain"}
    story = held(**notes).workload(90, 1, **notes).tell(95, "apps", "statefulsets", "train")
    assert story.claim(400, "", actor=CLAIMCTL).judge.violations == []


def test_a_setting_that_changed_too_late_explains_a_loss() -> None:
    story = held().workload(60, 2, when_deleted="Retain", retention_policy="Persistent")
    story.tell(61, "apps", "statefulsets", "train").claim(400, "", actor=CLAIMCTL)
    assert story.judge.violations == []
    story = held().workload(60, 2, when_deleted="Retain", retention_policy="Persistent")
    story.tell(200, "apps", "statefulsets", "train").claim(400, "", actor=CLAIMCTL)
    assert len(story.judge.violations) == 1


def test_a_claim_is_not_deleted_under_a_pod() -> None:
    story = held().workload(100, 2, template="other")
    story.tell(101, "resource.k8s.io", "resourceclaims", NAME, actor=CLAIMCTL)
    assert story.judge.violations == [f"{NAME} was deleted under pod train-1"]


@pytest.mark.parametrize("goes", [True, False], ids=["with its reservation", "alone"])
def test_a_claim_is_deleted_under_a_pod_that_waits_only_with_its_reservation(goes: bool) -> None:
    story = ToldHistory().workload(0, 2).claim(1, "").pod(1).reservation(90, deleting=goes)
    story.tell(100, "resource.k8s.io", "resourceclaims", NAME, actor=CLAIMCTL)
    assert story.judge.violations == ([] if goes else [f"{NAME} was deleted under pod train-1"])


def deleted_after_list(listed: int, sent: int) -> ToldHistory:
    """A claim, made at revision 3, is deleted at 5 after a LIST of pods; its pod came at 4."""
    story = ToldHistory().workload(0, 2).reservation(1).claim(1, "").pod(2)
    story.judge.deletions = [ClaimDeletion(NAME, sent, listed)]
    return story.tell(50, "resource.k8s.io", "resourceclaims", NAME, actor=CLAIMCTL)


@pytest.mark.parametrize(
    ("listed", "accused"), [(2, 1), (3, 0), (4, 1)], ids=["too early", "before it", "with it"]
)
def test_a_claim_is_deleted_after_a_list_that_has_no_pod_of_it(listed: int, accused: int) -> None:
    assert len(deleted_after_list(listed, sent=4).judge.violations) == accused


def test_a_deletion_that_was_sent_later_tells_nothing_of_this_one() -> None:
    assert len(deleted_after_list(3, sent=5).judge.violations) == 1


@pytest.mark.parametrize(("uid", "accused"), [("earlier", 0), ("set", 1)])
def test_a_claim_for_an_earlier_workload_goes_under_a_pod_that_waits(
    uid: str, accused: int
) -> None:
    story = ToldHistory().workload(0, 2).reservation(1).claim(1, "", reserved_for=uid).pod(1)
    story.tell(50, "resource.k8s.io", "resourceclaims", NAME, actor=CLAIMCTL)
    assert len(story.judge.violations) == accused


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ({"resourceClaimTemplateName": "big"}, "pod train-1 has no sticky claim for gpu"),
        ({"resourceClaimName": "train-2.sts.gpu.big"}, "pod train-1 names train-2.sts.gpu.big"),
    ],
    ids=["generated", "of another ordinal"],
)
def test_each_pod_names_the_claim_of_its_own_ordinal(pod: dict[str, str], text: str) -> None:
    assert ToldHistory().pod(0, **pod).judge.violations == [text]


GROUP_CLAIM = "train-1-1.lws.gpu.big"


def grouped(**notes: str) -> ToldHistory:
    """A LeaderWorkerSet of two groups of two, whose last pod has a claim that is held."""
    story = ToldHistory().groups(0, 2, 2, **notes).claim(1, "", name=GROUP_CLAIM)
    return story.member(1, "first").claim(2, "dev-0", HOLD, name=GROUP_CLAIM)


@pytest.mark.parametrize("template", ["other", None], ids=["another", "generated"])
def test_a_claim_of_a_group_may_go_once_its_next_pod_has_another(template: str | None) -> None:
    story = grouped().tell(100, "", "pods", "train-1-1").member(101, "second", template)
    story.claim(102, "", name=GROUP_CLAIM, actor=CLAIMCTL)
    assert story.judge.violations == []
    assert story.judge.counts["devices given up: another template"] == 1


@pytest.mark.parametrize("size", [(2, 2), (3, 3)])
def test_a_claim_of_a_group_is_kept_for_a_pod_that_names_it(size: tuple[int, int]) -> None:
    story = grouped().groups(50, *size, when_scaled="Delete")
    story.tell(100, "", "pods", "train-1-1").member(101, "second")
    story.claim(200, "", name=GROUP_CLAIM, actor=CLAIMCTL)
    assert len(story.judge.violations) == 1


@pytest.mark.parametrize("size", [(1, 2), (2, 1)], ids=["groups", "members"])
def test_a_claim_of_a_group_may_go_when_its_place_does(size: tuple[int, int]) -> None:
    story = grouped(when_scaled="Delete").groups(100, *size, when_scaled="Delete")
    story.tell(101, "", "pods", "train-1-1").claim(102, "", name=GROUP_CLAIM, actor=CLAIMCTL)
    assert story.judge.violations == []


@pytest.mark.parametrize(("template", "accused"), [("other", 0), ("big", 1)])
def test_a_claim_of_a_group_without_pods_may_go_when_the_template_is_another(
    template: str, accused: int
) -> None:
    kept = {"retention_policy": "Persistent"}
    story = grouped(**kept).groups(100, 1, 2, template, **kept)
    story.tell(101, "", "pods", "train-1-1").claim(400, "", name=GROUP_CLAIM, actor=CLAIMCTL)
    assert len(story.judge.violations) == accused


@pytest.mark.parametrize(("partition", "accused"), [(0, 0), (2, 1)], ids=["reached", "not yet"])
def test_a_claim_of_a_group_may_go_when_the_statefulset_of_its_pod_has_another_template(
    partition: int, accused: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    entry = {"name": "gpu", "resourceClaimTemplateName": "other"}
    pod = {"metadata": {"annotations": {"claimctl.io/sticky": "*"}}}
    part: Body = {
        "metadata": {"name": "train-1", "namespace": "default", "uid": "part"},
        "spec": {
            "replicas": 1,
            "ordinals": {"start": 1},
            "updateStrategy": strategy,
            "template": {**pod, "spec": {"resourceClaims": [entry]}},
        },
        "status": {"currentRevision": "1", "updateRevision": "2"},
    }
    story = grouped().tell(100, "", "pods", "train-1-1").tell(101, "apps", "statefulsets", part)
    story.claim(102, "", name=GROUP_CLAIM, actor=CLAIMCTL)
    assert len(story.judge.violations) == accused


def test_a_claim_of_a_group_whose_pod_has_another_is_held_in_vain() -> None:
    story = grouped()
    assert story.judge.held_in_vain("default") == []
    story.tell(100, "", "pods", "train-1-1")
    assert story.judge.held_in_vain("default") == []
    story.member(101, "second", None)
    assert story.judge.held_in_vain("default") == [GROUP_CLAIM]


def test_below_the_partition_only_a_pod_tells_that_a_claim_may_go() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    rolled: Body = {
        "metadata": {"name": "train", "namespace": "default", "uid": "set", "generation": 2},
        "spec": {"replicas": 2, "template": {"spec": {}}, "updateStrategy": strategy},
        "status": {"observedGeneration": 2, "currentRevision": "1", "updateRevision": "2"},
    }
    story = held().tell(100, "apps", "statefulsets", rolled).tell(101, "", "pods", "train-1")
    assert len(story.claim(200, "", actor=CLAIMCTL).judge.violations) == 1
    rolled["status"]["currentRevision"] = "2"
    story = held().tell(100, "apps", "statefulsets", rolled).tell(101, "", "pods", "train-1")
    assert story.claim(200, "", actor=CLAIMCTL).judge.violations == []


def test_a_claim_that_is_generated_beside_a_sticky_one_is_found() -> None:
    meta: Body = {"name": "train-1-gpu-x", "namespace": "default", "uid": "generated"}
    meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "train-1", "uid": "pod"}]
    body = {"metadata": meta, "spec": {}, "status": {}}
    story = ToldHistory().pod(0).tell(1, "resource.k8s.io", "resourceclaims", body, KCM)
    assert story.judge.violations == ["claim train-1-gpu-x was generated for train-1"]


def test_what_may_stay_after_the_workload() -> None:
    wish = Wish(0.0, "set", True, range(2), asked=frozenset({("gpu", "big")}))
    judge = StickyJudge({CLAIMCTL})
    judge.wishes["sts", "train"] = wishes = Wishes([wish])
    wishes.end(100.0)
    assert not judge.may_stay(PLACE)
    kept = Wish(0.0, "set", True, range(2), asked=wish.asked, when_deleted="Retain")
    judge.wishes["sts", "train"] = wishes = Wishes([kept])
    assert not judge.may_stay(PLACE)
    wishes.end(100.0)
    assert judge.may_stay(PLACE)
    assert not judge.may_stay(StickyPlace(PLACE.pod, "gpu", "other"))


def test_a_claim_of_a_worker_may_stay_whose_template_changed_while_its_group_was_away() -> None:
    changed = frozenset({("gpu", "other")})
    judge = StickyJudge({CLAIMCTL})
    wish = Wish(0.0, "set", True, range(0), range(2), earlier=None, when_deleted="Retain")
    asking = replace(wish, asked=changed, asked_of_leaders=changed)
    judge.wishes["lws", "train"] = wishes = Wishes([asking])
    wishes.end(100.0)
    worker, leader = PodPlace("lws", "train", 1, 1), PodPlace("lws", "train", 1, 0)
    assert judge.may_stay(StickyPlace(worker, "gpu", "big"))
    assert not judge.may_stay(StickyPlace(leader, "gpu", "big"))
