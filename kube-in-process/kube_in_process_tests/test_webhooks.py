"""Admission webhooks are called, and do what they do on a real server (1.36.2), in its words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kube_in_process.clock import LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.store import Revision

from kube_in_process_tests.hooks import (
    Hooks,
    allowed,
    configuration,
    denied,
    hooks,
    patch,
)
from kube_in_process_tests.servers import Server, server

pytestmark = pytest.mark.real_time(60)
MAPS = "/api/v1/namespaces/ns/configmaps"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
Json = dict[str, Any]


def config_map(case: str, name: str = "c", **more: Any) -> Json:
    return {"metadata": {"name": name, "labels": {"case": case}, **more}, "data": {"k": "v"}}


async def configured(kind: str, *webhooks: Json) -> Server:
    served = server()
    answer = await served.send("POST", *configuration(kind, *webhooks))
    assert answer.status == 201, answer.body
    return served


async def refusal(asked: Server, case: str) -> tuple[int, str]:
    answer = await asked.send("POST", MAPS, config_map(case))
    return answer.status, answer.body.get("message", "")


async def test_a_validating_webhook_sees_the_object_and_may_warn() -> None:
    async with hooks() as served:
        served.answers["sees"] = allowed(warnings=["careful"])
        asked = await configured(VALIDATING, served.hook("sees"))
        answer = await asked.send("POST", f"{MAPS}?fieldManager=me", config_map("sees"))
    assert (answer.status, answer.headers["warning"]) == (201, '299 - "careful"')
    (request,) = served.asked
    assert request["object"]["metadata"]["uid"]
    assert {key: value for key, value in request.items() if key not in ("uid", "object")} == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "c",
        "namespace": "ns",
        "operation": "CREATE",
        "userInfo": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
        },
    }


async def test_refusals_and_failures_have_the_words_of_a_real_server() -> None:
    async with hooks() as served:
        served.answers |= {
            "denies": denied(),
            "says": denied(message="because"),
            "code": denied(message="gone away", code=410, reason="Gone"),
            "reason": denied(reason="SomeReason"),
            "patches": patch({"op": "add", "path": "/data/p", "value": "q"}),
            "other": allowed(uid="x"),
        }
        cases = ["denies", "says", "code", "reason", "patches", "other", "broken"]
        forgiven = served.hook(
            "forgiven",
            failurePolicy="Ignore",
            clientConfig={"url": f"{served.url}/broken", "caBundle": served.bundle},
        )
        untrusted = served.hook("untrusted", clientConfig={"url": f"{served.url}/allows"})
        asked = await configured(VALIDATING, *map(served.hook, cases), forgiven, untrusted)
        refusals = {case: await refusal(asked, case) for case in [*cases, "untrusted", "forgiven"]}
    denial = 'admission webhook "{}.example.com" denied the request'
    failure = 'Internal error occurred: failed calling webhook "{}.example.com": '
    invalid = "received invalid webhook response: "
    uid = refusals["other"][1].partition('response.uid="')[2].partition('"')[0]
    trust = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert refusals == {
        "denies": (400, denial.format("denies") + " without explanation"),
        "says": (400, denial.format("says") + ": because"),
        "code": (410, denial.format("code") + ": gone away"),
        "reason": (400, denial.format("reason") + ": SomeReason"),
        "patches": (
            500,
            f"{failure.format('patches')}{invalid}validating webhook may not return response.patch",
        ),
        "other": (
            500,
            f'{failure.format("other")}{invalid}expected response.uid="{uid}", got "x"',
        ),
        "broken": (
            500,
            failure.format("broken") + 'failed to call webhook: an error on the server ("broken") '
            "has prevented the request from succeeding",
        ),
        "untrusted": (
            500,
            f"{failure.format('untrusted')}failed to call webhook: Post "
            f'"{served.url}/allows?timeout=10s": {trust}',
        ),
        "forgiven": (201, ""),
    }


async def test_a_webhook_that_is_not_there_has_failed() -> None:
    served = Hooks("", "")
    down = {"url": "https://127.0.0.1:1/down"}
    asked = await configured(VALIDATING, served.hook("down", clientConfig=down))
    status, text = await refusal(asked, "down")
    assert status == 500
    assert text.endswith("dial tcp 127.0.0.1:1: connect: connection refused")


async def test_mutating_webhooks_change_the_object_and_are_asked_again_if_they_want() -> None:
    b = {"op": "add", "path": "/data/b", "value": "q"}
    c = patch({"op": "add", "path": "/data/c", "value": "q"})
    async with hooks() as served:
        served.answers |= {
            "once": lambda request: (
                c(request) if "b" in request["object"]["data"] else allowed()(request)
            ),
            "adds": patch(b),
            "misses": patch({"op": "remove", "path": "/data/none"}),
        }
        served.answers["twice"] = served.answers["once"]
        adds = {"objectSelector": {"matchExpressions": [{"key": "case", "operator": "Exists"}]}}
        asked = await configured(
            MUTATING,
            served.hook("once"),
            served.hook("twice", reinvocationPolicy="IfNeeded"),
            served.hook("misses"),
            served.hook("adds", **adds),
        )
        answers = {
            case: (await asked.send("POST", MAPS, config_map(case, case))).body["data"]
            for case in ("once", "twice")
        }
        missed = await refusal(asked, "misses")
    assert answers == {"once": {"b": "q", "k": "v"}, "twice": {"b": "q", "c": "q", "k": "v"}}
    assert missed == (
        500,
        "Internal error occurred: error in remove for path: '/data/none': Unable to remove "
        "nonexistent key: none: missing value",
    )


async def test_each_operation_is_asked_about_once() -> None:
    async with hooks() as served:
        served.answers["all"] = allowed()
        asked = await configured(VALIDATING, served.hook("all"))
        await asked.send("POST", MAPS, config_map("all"))
        await asked.send("POST", MAPS, config_map("all", "", generateName="g-"))
        await asked.merge_patch(f"{MAPS}/c", {"data": {"k": "w"}})
        await asked.send("DELETE", f"{MAPS}/c")
        await asked.send("DELETE", MAPS)
    seen = [(review["operation"], review.get("name", "")) for review in served.asked]
    generated = served.asked[1]["object"]["metadata"]["name"]
    assert seen == [
        ("CREATE", "c"),
        ("CREATE", generated),
        ("UPDATE", "c"),
        ("DELETE", "c"),
        ("DELETE", ""),
    ]
    assert served.asked[3]["oldObject"]["data"] == {"k": "w"}


async def test_a_write_that_meets_another_object_asks_again() -> None:
    async with hooks() as served:
        asked = await configured(VALIDATING, served.hook("slow"))
        local = asked.local()
        local.create("configmaps", config_map("none"), "ns")

        def meanwhile(request: Json) -> Json:
            if len(served.asked) == 1:
                local.patch("configmaps", "ns", "c", {"data": {"other": "1"}})
            return {"allowed": True}

        served.answers["slow"] = meanwhile
        change = {"metadata": {"labels": {"case": "slow"}}, "data": {"k": "w"}}
        answer = await asked.merge_patch(f"{MAPS}/c", change)
    assert answer.body["data"] == {"k": "w", "other": "1"}
    assert [review["object"]["data"] for review in served.asked] == [
        {"k": "w"},
        {"k": "w", "other": "1"},
    ]


async def test_a_webhook_behind_a_service_is_refused_as_no_network_leads_there() -> None:
    service = {"service": {"name": "s", "namespace": "ns"}}
    hook = Hooks("", "").hook("any", clientConfig=service)
    answer = await server().send("POST", *configuration(VALIDATING, hook))
    assert (answer.status, answer.body["message"]) == (
        403,
        "validatingwebhookconfigurations.admissionregistration.k8s.io: "
        "webhooks[0].clientConfig.service: a webhook behind a Service (give it a url) is not "
        "emulated",
    )


async def test_controllers_wait_for_webhooks_and_go_on() -> None:
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods", "events"],
        }
    ]
    label = {"op": "add", "path": "/metadata/labels/hooked", "value": "yes"}
    async with hooks() as served:
        served.answers["pods"] = lambda request: (
            patch(label) if request["resource"]["resource"] == "pods" else allowed()
        )(request)
        cluster = Cluster(ClusterOptions(nodes=1), LoopClock())
        await cluster.start()
        try:
            hook = served.hook("pods", rules=rules, objectSelector={})
            _, body = configuration(MUTATING, hook)
            cluster.admin.create("mutatingwebhookconfigurations", body)
            template = {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            selector = {"matchLabels": {"a": "b"}}
            spec = {"replicas": 3, "selector": selector, "template": template}
            body = {"metadata": {"name": "d"}, "spec": spec}
            cluster.admin.create("deployments", body, "default")

            def look(revision: Revision) -> None:
                if len(cluster.admin.list("pods", "default", "hooked=yes")) == 3:
                    is_made.set()

            is_made = asyncio.Event()
            cluster.store.subscribe(look, "", "pods")
            noted = asyncio.Event()
            cluster.store.subscribe(lambda revision: noted.set(), "", "events")
            async with asyncio.timeout(10):
                await is_made.wait()
                await noted.wait()
            assert cluster.failures == []
        finally:
            await cluster.stop()
    asked = [
        review["userInfo"]["username"]
        for review in served.asked
        if review["resource"]["resource"] == "pods"
    ]
    assert asked == ["system:kube-controller-manager"] * 3
