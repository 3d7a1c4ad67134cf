"""The policy of the component sticky-claims rewrites pods of ordinals, and leaves all others alone.

``tests/e2e/test_sticky_policy.py`` plays the same on clusters, also on real ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.options import ClusterOptions, Preset

FILE = Path(__file__).parents[3] / "deploy/components/sticky-claims/sticky-claims.yaml"
POLICY, BINDING, BY_RULE, RULE_BINDING = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
CRD = yaml.safe_load(
    (Path(__file__).parents[3] / "crds/workloadkinds.claimctl.io.yaml").read_text("utf-8")
)
STICKY, REWRITTEN = "claimctl.io/sticky", "claimctl.io/sticky-claims"
LWS, GROUP = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"
INDEX, COMPLETION = "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"
Json = dict[str, Any]

STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
GPU = {"name": "gpu", "resourceClaimTemplateName": "big"}
NET = {"name": "net", "resourceClaimTemplateName": "fast.nic"}
OWN = {"name": "own", "resourceClaimName": "mine"}
STICKY_GPU = {"name": "gpu", "resourceClaimName": "train-2.sts.gpu.big"}
STICKY_NET = {"name": "net", "resourceClaimName": "train-2.sts.net.fast.nic"}
IN_GROUP = {"schedulingGroup": {"podGroupName": "train"}}


class ApiSender:
    """An API server with the policy in force."""

    def __init__(self, options: ClusterOptions) -> None:
        self._handler = api_server(options, LoopClock(EPOCH))

    async def post(self, path: str, body: Json) -> tuple[int, Json]:
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        found = await self._handler.send("POST", path, [], headers, data)
        whole = b"".join([part async for part in found.body])
        return found.status, json.loads(whole)

    async def define(self, group: str, kind: str, labels: list[str] | None) -> None:
        """Define WorkloadKinds, and one whose ordinals are in these labels."""
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await self.post(crds, CRD))[0] == 201
        spec: Json = {"group": group, "kind": kind}
        if labels is not None:
            spec["ordinals"] = {"labels": labels}
        rule = {"apiVersion": "claimctl.io/v1alpha1", "kind": "WorkloadKind", "spec": spec}
        rule["metadata"] = {"name": f"{kind.lower()}s.{group}"}
        status, answer = await self.post("/apis/claimctl.io/v1alpha1/workloadkinds", rule)
        assert status == 201, answer

    async def installed(self) -> ApiSender:
        admission = "/apis/admissionregistration.k8s.io/v1"
        for plural, each in (
            *(("ies", POLICY), ("ybindings", BINDING)),
            *(("ies", BY_RULE), ("ybindings", RULE_BINDING)),
        ):
            path = f"{admission}/mutatingadmissionpolic{plural}"
            status, answer = await self.post(path, each)
            assert status == 201, answer
        await self.post("/api/v1/namespaces", {"metadata": {"name": "ml"}})
        return self

    async def pod(self, meta: Json, spec: Json) -> tuple[int, Json]:
        body = {"metadata": {"name": "p", **meta}, "spec": {"containers": [MAIN], **spec}}
        return await self.post("/api/v1/namespaces/ml/pods", body)


MAIN = {"name": "main", "image": "train"}


def meta(
    sticky: str | None = "*",
    owner: Json | None = STATEFUL_SET,
    labels: Json | None = None,
    noted: str | None = None,
) -> Json:
    """The metadata of a pod of ordinal 2 of ``train``."""
    annotations = {STICKY: sticky, REWRITTEN: noted}
    made: Json = {
        "annotations": {key: value for key, value in annotations.items() if value is not None},
        "labels": {INDEX: "2"} if labels is None else labels,
    }
    if owner is not None:
        made["ownerReferences"] = [{**owner, "name": "train", "uid": "u"}]
    return made


async def made(told: Json, *entries: Json, groups: bool = False, **spec: Any) -> tuple[Any, Any]:
    """The entries of the pod that the API server makes, and what the policy notes on it."""
    preset = Preset.POD_GROUPS if groups else Preset.PLAIN
    server = await ApiSender(ClusterOptions(preset=preset, kubernetes_version=(1, 36))).installed()
    status, pod = await server.pod(told, {"resourceClaims": list(entries), **spec})
    assert status == 201, pod
    noted = (pod["metadata"].get("annotations") or {}).get(REWRITTEN)
    return pod["spec"].get("resourceClaims"), noted


@pytest.mark.parametrize(
    ("sticky", "entries", "wanted", "noted"),
    [
        pytest.param("*", [GPU], [STICKY_GPU], "gpu=big", id="all"),
        pytest.param(
            "*", [GPU, OWN, NET], [STICKY_GPU, OWN, STICKY_NET], "gpu=big,net=fast.nic", id="two"
        ),
        pytest.param("gpu", [NET, GPU], [NET, STICKY_GPU], "gpu=big", id="one by name"),
        pytest.param(
            " net ,gpu", [GPU, NET], [STICKY_GPU, STICKY_NET], "gpu=big,net=fast.nic", id="spaces"
        ),
        pytest.param("gpu, *", [NET], [STICKY_NET], "net=fast.nic", id="all beside a name"),
        pytest.param("gpus", [GPU], [GPU], None, id="no such entry"),
        pytest.param("own", [OWN, GPU], [OWN, GPU], None, id="an entry that names a claim"),
        pytest.param("*", [OWN], [OWN], None, id="no entry from a template"),
        pytest.param("", [GPU], [GPU], None, id="no name"),
        pytest.param(None, [GPU], [GPU], None, id="not asked for"),
    ],
)
async def test_the_chosen_entries_name_the_claim_of_the_ordinal(
    sticky: str | None, entries: list[Json], wanted: list[Json], noted: str | None
) -> None:
    assert await made(meta(sticky), *entries) == (wanted, noted)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(meta(owner=None), id="no owner"),
        pytest.param(meta(owner={**STATEFUL_SET, "controller": False}), id="not its controller"),
        pytest.param(
            meta(owner={**STATEFUL_SET, "apiVersion": "apps.kruise.io/v1beta1"}), id="another group"
        ),
        pytest.param(meta(owner={**STATEFUL_SET, "kind": "ReplicaSet"}), id="another kind"),
        pytest.param(meta(labels={}), id="no labels"),
        pytest.param(meta(labels={COMPLETION: "2"}), id="the label of a Job"),
        pytest.param(meta(owner=JOB), id="the label of a StatefulSet"),
        pytest.param(meta(labels={INDEX: "2", LWS: "x"}), id="no leader"),
        pytest.param(meta(labels={INDEX: "2", LWS: "trai", GROUP: "0"}), id="no worker"),
        pytest.param(meta(labels={LWS: "train"}), id="a leader without a group"),
        pytest.param(
            meta(owner=JOB, labels={COMPLETION: "2", LWS: "train"}), id="a Job of such a name"
        ),
        pytest.param({}, id="no metadata"),
    ],
)
async def test_a_pod_without_an_ordinal_is_left_alone(told: Json) -> None:
    assert await made(told, GPU) == ([GPU], None)


async def test_a_pod_that_was_rewritten_is_left_alone() -> None:
    assert await made(meta(noted="net=x"), GPU) == ([GPU], "net=x")


async def test_a_pod_without_claims_is_made() -> None:
    server = await ApiSender(ClusterOptions(kubernetes_version=(1, 36))).installed()
    status, pod = await server.pod(meta(), {})
    assert (status, pod["metadata"]["annotations"]) == (201, {STICKY: "*"})


async def test_the_index_of_a_job_is_its_ordinal() -> None:
    entries, noted = await made(meta(owner=JOB, labels={COMPLETION: "2"}), GPU)
    assert (entries, noted) == (
        [{"name": "gpu", "resourceClaimName": "train-2.job.gpu.big"}],
        "gpu=big",
    )


@pytest.mark.parametrize(
    ("set_name", "labels", "claim"),
    [
        ("train", {INDEX: "3"}, "train-3-0.lws.gpu.big"),
        ("train-3", {INDEX: "1", GROUP: "3"}, "train-3-1.lws.gpu.big"),
        # the leader of group 3 of another one
        ("train-3", {INDEX: "1", LWS: "train-3"}, "train-3-1-0.lws.gpu.big"),
    ],
)
async def test_the_ordinal_in_a_group_is_that_of_the_group_and_the_place_in_it(
    set_name: str, labels: Json, claim: str
) -> None:
    told = meta(labels={LWS: "train", **labels})
    told["ownerReferences"][0]["name"] = set_name
    wanted = {"name": "gpu", "resourceClaimName": claim}
    assert await made(told, GPU) == ([wanted], "gpu=big")


@pytest.mark.parametrize(
    ("labels", "given", "word"),
    [
        (["x.io/index"], {"x.io/index": "2"}, "2"),
        (["x.io/group", "x.io/rank"], {"x.io/group": "4", "x.io/rank": "0"}, "4-0"),
        (["x.io/index"], {"x.io/index": "two"}, None),
        (["x.io/index"], {"x.io/index": "02"}, None),
        (["x.io/index", "x.io/rank"], {"x.io/index": "2"}, None),
        (None, {"x.io/index": "2"}, None),
    ],
)
async def test_a_workload_kind_names_the_labels_of_the_ordinals(
    labels: list[str] | None, given: Json, word: str | None
) -> None:
    server = await ApiSender(ClusterOptions(kubernetes_version=(1, 36))).installed()
    await server.define("apps.x-k8s.io", "Gang", labels)
    gang = {"apiVersion": "apps.x-k8s.io/v1", "kind": "Gang", "controller": True}
    status, pod = await server.pod(meta(owner=gang, labels=given), {"resourceClaims": [GPU]})
    assert status == 201, pod
    claim = {"name": "gpu", "resourceClaimName": f"train-{word}.gang-apps-x--k8s-io.gpu.big"}
    assert pod["spec"]["resourceClaims"] == [GPU if word is None else claim]


@pytest.mark.parametrize(("kind", "group"), [("ReplicaSet", "apps"), ("Job", "batch")])
async def test_no_workload_kind_gives_kinds_of_kubernetes_ordinals(kind: str, group: str) -> None:
    """claimctl would make no claim of such a name, and the pods would wait for ever."""
    server = await ApiSender(ClusterOptions(kubernetes_version=(1, 36))).installed()
    await server.define(group, kind, ["x.io/index"])
    owner = {"apiVersion": f"{group}/v1", "kind": kind, "controller": True}
    told = meta(owner=owner, labels={"x.io/index": "2"})
    status, pod = await server.pod(told, {"resourceClaims": [GPU]})
    assert (status, pod["spec"]["resourceClaims"]) == (201, [GPU])


async def test_without_the_crd_of_workload_kinds_no_pod_is_refused() -> None:
    gang = {"apiVersion": "apps.x-k8s.io/v1", "kind": "Gang", "controller": True}
    assert await made(meta(owner=gang, labels={"x.io/index": "2"}), GPU) == ([GPU], None)
    assert BY_RULE["spec"]["failurePolicy"] == "Ignore"


@pytest.mark.parametrize(
    ("sticky", "wanted"),
    [("*", [GPU, NET]), ("*, net", [GPU, STICKY_NET]), ("gpu", [STICKY_GPU, NET])],
)
async def test_of_a_pod_in_a_group_only_named_entries_are_rewritten(
    sticky: str, wanted: list[Json]
) -> None:
    entries, _ = await made(meta(sticky), GPU, NET, groups=True, **IN_GROUP)
    assert entries == wanted


async def test_a_pod_that_cannot_be_rewritten_is_refused() -> None:
    server = await ApiSender(ClusterOptions(kubernetes_version=(1, 36))).installed()
    twice = [GPU, {**GPU, "resourceClaimTemplateName": "small"}]
    status, answer = await server.pod(meta(), {"resourceClaims": twice})
    assert (status, "claimctl-sticky-claims" in answer["message"]) == (403, True)
    assert POLICY["spec"]["failurePolicy"] == "Fail"
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"]}
