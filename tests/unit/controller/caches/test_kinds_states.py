"""What is known of a kind of workloads."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.caches.kinds import rules_by_kind, state_of
from claimctl.kube.discovery import Discovery
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.workload_kinds import WorkloadKind, WorkloadKindSpec
from tests.e2e.harness import DEFINITIONS
from tests.e2e.kinds import GANGS, definition
from tests.support.claim_server import Server

GANG = ("acme.example", "Gang")


def rule(name: str = "gangs.acme.example", **spec: str) -> WorkloadKind:
    return WorkloadKind(
        metadata=ObjectMeta(name=name),
        spec=replace(WorkloadKindSpec(group=GANG[0], kind=GANG[1]), **spec),
    )


async def problem(*documents: WorkloadKind, namespaced: bool = True) -> str:
    client = Server.started("ml").client
    body = definition(GANGS)
    body["spec"]["scope"] = "Namespaced" if namespaced else "Cluster"
    await client.create(DEFINITIONS, body)
    return (await state_of(client, Discovery(client), GANG, rules_by_kind(documents))).problem


async def test_a_rule_that_can_be_used() -> None:
    assert await problem(rule(idle="self.spec.paused")) == ""


async def test_bad_rules_are_named_with_their_field() -> None:
    about = "WorkloadKind gangs.acme.example:"
    assert (await problem(rule(ended="self.status.phase =="))).startswith(
        f"{about} spec.ended is not CEL"
    )
    assert (
        await problem(rule(ended="!has(self.spec.x)"))
        == f"{about} spec.ended is true for a workload that has neither spec nor status"
    )
    assert await problem(rule(idle="1 == 1")) == f"{about} spec.idle does not use self"


async def test_a_name_that_is_not_that_of_the_definition() -> None:
    assert await problem(rule("gang.acme.example")) == (
        "WorkloadKind gang.acme.example: metadata.name has to be gangs.acme.example"
    )
    assert "metadata.name 'acme' is not the plural" in await problem(rule("acme"))


async def test_a_kind_that_is_not_namespaced() -> None:
    assert await problem(namespaced=False) == "Gang of acme.example is not namespaced"


async def test_of_two_rules_for_a_kind_the_first_by_name_counts() -> None:
    first, second = rule(idle="self.spec.a"), rule("zeros.acme.example", idle="self.spec.b")
    assert rules_by_kind([second, first]) == {GANG: first}
