"""The parameters of a driver are bytes: which writes an API server takes, by their form.

The answers are those of real 1.34.9 and 1.36.2 servers.
"""

from __future__ import annotations

import json

import pytest
from kube_in_process.virtual import run

from kube_in_process_tests.servers import CLAIMS, Answered, Object, Server, reference, server

SORTED = '{"apiVersion":"g/v1","kind":"C","z":1}'
COMPACT = '{"kind":"C","apiVersion":"g/v1","z":1}'
SPACES = '{"apiVersion": "g/v1", "kind": "C", "z": 1}'
LESS, ESCAPED = '{"a":"<b> & c"}', '{"a":"\\u003cb\\u003e \\u0026 c"}'
EXPONENT = '{"a":1e3}'
FORMS = {
    "sorted and compact": (SORTED, 200, 200),
    "compact, not sorted": (COMPACT, 422, 200),
    "with spaces": (SPACES, 422, 422),
    "with a line break": ('{"a":1}'.replace(":", ":\n"), 422, 422),
    "with <, > and &": (LESS, 422, 422),
    "with <, > and & as Go escapes them": (ESCAPED, 200, 200),
    "not sorted inside": ('{"a":{"c":1,"b":2}}', 422, 200),
    "a number that Go writes otherwise": (EXPONENT, 422, 200),
    "a whole number with a point": ('{"a":1.0}', 422, 200),
    "a letter that needs no escape": ('{"a":"\\u00e9"}', 422, 200),
    "spaces in a string": ('{"a":"b: \\" c"}', 200, 200),
}
"""By form: the parameters, the answer to a strategic merge patch, and to any other patch."""


def _spec(parameters: str) -> str:
    return (
        '{"devices":{"requests":[{"name":"q","exactly":{"deviceClassName":"x"}}],"config":'
        f'[{{"requests":["q"],"opaque":{{"driver":"d.example.com","parameters":{parameters}}}}}]}}}}'
    )


def _status(parameters: str) -> str:
    config = f'{{"driver":"d.example.com","parameters":{parameters}}}'
    return (
        '{"allocation":{"devices":{"results":[{"request":"q","driver":"d.example.com","pool":"p",'
        '"device":"x"}],"config":[{"source":"FromClaim","requests":["q"],"opaque":'
        f"{config}}}]}}}}," + f'"reservedFor":[{json.dumps(reference(0))}]}}'
    )


async def _put(served: Server, spec: str, status: str) -> Answered:
    meta = (await served.send("GET", f"{CLAIMS}/c")).body["metadata"]
    body = f'{{"metadata":{json.dumps(meta)},"spec":{_spec(spec)},"status":{_status(status)}}}'
    return await served.send("PUT", f"{CLAIMS}/c/status", body.encode())


async def _allocated(parameters: str) -> Server:
    """A server with an allocated claim; a scheduler copies the bytes of the parameters."""
    served = server()
    body = f'{{"metadata":{{"name":"c"}},"spec":{_spec(parameters)}}}'
    assert (await served.send("POST", CLAIMS, body.encode())).status == 201
    assert (await _put(served, parameters, parameters)).status == 200
    return served


async def _patch(served: Server, kind: str, body: object, path: str = "/status") -> int:
    media = {"content-type": f"application/{kind}-patch+json"}
    return (await served.send("PATCH", f"{CLAIMS}/c{path}", body, media)).status


@pytest.mark.parametrize(("parameters", "strategic", "other"), FORMS.values(), ids=FORMS)
def test_which_patches_are_taken(parameters: str, strategic: int, other: int) -> None:
    async def answers() -> dict[str, int]:
        served = await _allocated(parameters)
        lists: list[Object] = [{"status": {"reservedFor": [reference(n)]}} for n in (1, 2)]
        added = [{"op": "add", "path": "/status/reservedFor/-", "value": reference(3)}]
        meta: Object = {"metadata": {"annotations": {"a": "b"}}}
        return {
            "strategic": await _patch(served, "strategic-merge", lists[0]),
            "merge": await _patch(served, "merge", lists[1]),
            "json": await _patch(served, "json", added),
            "metadata": await _patch(served, "merge", meta, ""),
            "metadata, strategic": await _patch(served, "strategic-merge", meta, ""),
        }

    expected = dict.fromkeys(("merge", "json", "metadata"), other)
    assert run(answers()) == {
        "strategic": strategic,
        **expected,
        "metadata, strategic": strategic,
    }


@pytest.mark.parametrize(
    ("spec", "status", "immutable"),
    [
        (SPACES, SPACES, ""),
        (SORTED, SPACES, ""),
        (SPACES, SORTED, "status.allocation"),
    ],
)
def test_a_put_is_compared_by_bytes(spec: str, status: str, immutable: str) -> None:
    async def put() -> Answered:
        return await _put(await _allocated(SPACES), spec, status)

    answer = run(put())
    assert answer.status == (422 if immutable else 200)
    assert not immutable or f"{immutable}: Invalid value" in answer.body["message"]


def test_a_spec_in_another_form_is_another_spec() -> None:
    async def put() -> Answered:
        served = await _allocated(SPACES)
        meta = (await served.send("GET", f"{CLAIMS}/c")).body["metadata"]
        body = f'{{"metadata":{json.dumps(meta)},"spec":{_spec(SORTED)}}}'
        return await served.send("PUT", f"{CLAIMS}/c", body.encode())

    answer = run(put())
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (422, "spec")


def test_answers_have_the_bytes_without_spaces() -> None:
    async def seen() -> list[str]:
        served = await _allocated('{"z" : 1e3,\n"a": "<"}')
        paths = (f"{CLAIMS}/c", CLAIMS, f"{CLAIMS}?watch=1&resourceVersion=0&timeoutSeconds=1")
        answers = [await served.open("GET", path) for path in paths]
        return [b"".join([part async for part in answer.body]).decode() for answer in answers]

    for text in run(seen()):
        assert text.count('"parameters":{"z":1e3,"a":"\\u003c"}') == 2


def test_an_apply_keeps_the_parameters_only_if_go_writes_them_so() -> None:
    async def applied(parameters: str) -> int:
        served = await _allocated(parameters)
        body = json.dumps(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "labels": {"a": "b"}},
            }
        )
        path = f"{CLAIMS}/c?fieldManager=me&force=true"
        media = {"content-type": "application/apply-patch+yaml"}
        return (await served.send("PATCH", path, body.encode(), media)).status

    assert run(applied(SORTED)) == 200
    assert run(applied(SPACES)) == 422
