"""The dialect is found out by what the server does."""

from __future__ import annotations

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault
from kube_in_process.virtual import run

from claimctl.controller.dialect import Detection, DialectProbe, DialectUnknown
from claimctl.kube.errors import KubeError
from tests.support.counting_server import server


def detect(dialect: Preset, version: tuple[int, int], **probe: str) -> Detection:
    async def main() -> Detection:
        made = server(dialect, kubernetes_version=version)
        found = await DialectProbe(made.client, **probe).detect()
        assert made.admin.list("resourceclaims") == []
        return found

    return run(main())


def test_a_server_that_gives_the_field_back_speaks_native() -> None:
    assert detect(Preset.RESERVED_FOR_ANY_POD, (1, 36)) == Detection(
        "native",
        (1, 36),
        (
            "a dry-run create of a ResourceClaim gives spec.reservedFor back",
            "server version 1.36",
        ),
    )


def test_a_server_that_drops_the_field_is_held_in_the_hold_way() -> None:
    found = detect(Preset.PLAIN, (1, 34))
    assert (found.dialect, found.version, found.needs_binding) == ("hold", (1, 34), False)
    assert detect(Preset.PLAIN, (1, 36)).needs_binding


def test_the_operator_is_believed() -> None:
    found = detect(Preset.RESERVED_FOR_ANY_POD, (1, 36), override="hold")
    assert found == Detection(
        "hold", (1, 36), ("set to hold by the operator", "server version 1.36")
    )


def test_the_namespace_of_the_probe_need_not_exist() -> None:
    assert detect(Preset.RESERVED_FOR_ANY_POD, (1, 36), namespace="nosuch").dialect == "native"


async def test_a_server_that_does_not_let_us_ask_leaves_the_question_open() -> None:
    made = server()
    made.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden", message="no") if point.verb == "create" else None
    )
    with pytest.raises(DialectUnknown, match="grant create on resourceclaims in namespace x"):
        await DialectProbe(made.client, namespace="x").detect()


def ask_about_groups(status: int, reason: str) -> Detection:
    async def main() -> Detection:
        made = server(Preset.POD_GROUPS)
        refused = Fault(status=status, reason=reason, message="no")
        made.handler.fault = lambda point: (
            refused if (point.verb, point.plural) == ("create", "podgroups") else None
        )
        return await DialectProbe(made.client).detect()

    return run(main())


@pytest.mark.parametrize(
    ("status", "reason"), [(403, "Forbidden"), (400, "BadRequest"), (422, "Invalid")]
)
def test_groups_that_may_not_be_made_are_not_used(status: int, reason: str) -> None:
    assert ask_about_groups(status, reason).dialect == "hold"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(500, "InternalError"), (503, "ServiceUnavailable"), (429, "TooManyRequests"), (409, "x")],
)
def test_a_server_that_does_not_say_is_not_taken_to_have_no_groups(
    status: int, reason: str
) -> None:
    with pytest.raises(KubeError):
        ask_about_groups(status, reason)
