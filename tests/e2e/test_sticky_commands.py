"""What the commands say of sticky claims, and how an uninstall and a downgrade leave their pods."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
import yaml

from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, POD, RESERVED_FOR, parse
from claimctl.cli.session import Session
from claimctl.commands.claims.explain_work import explain_object
from claimctl.commands.claims.get_work import ClaimsWanted, get
from claimctl.commands.claims.release_request import ReleaseWanted
from claimctl.commands.claims.release_work import release
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine
from claimctl.commands.install.objects import Objects
from claimctl.commands.timeline import work as timeline
from claimctl.commands.tree import work as tree
from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase
from claimctl.kube.errors import KubeError
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
)
from claimctl.wire.seams import Transport
from tests.e2e import manifests
from tests.e2e.downgrading import prepared
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.site import PEOPLE
from tests.e2e.sticky import FILE, asking, entries, install_policy, make_templates
from tests.e2e.uninstalling import Remover, reasons

pytestmark = pytest.mark.cluster(HOLD_136)

GPU = ("gpu", "big")


def claim_of(ordinal: int) -> str:
    return f"train-{ordinal}.sts.gpu.big"


def sts(*ordinals: int) -> list[str]:
    return [claim_of(ordinal) for ordinal in ordinals]


async def make_set(stage: Stage, replicas: int, **annotations: str) -> None:
    body = asking(manifests.stateful_set(replicas=replicas), "*", GPU)
    named = {f"claimctl.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    body["metadata"]["annotations"] = named
    body["spec"]["podManagementPolicy"] = "Parallel"
    await stage.create(STATEFULSETS, body)


async def trained(stage: Stage, replicas: int = 3, **annotations: str) -> None:
    """A StatefulSet with sticky claims that are held, and whose pods run."""
    await stage.started()
    await install_policy(stage)
    await make_templates(stage, "big")
    await make_set(stage, replicas, **annotations)
    await stage.until_running(replicas)
    await until_held(stage, *sts(*range(replicas)))


async def until_held(stage: Stage, *claims: str) -> None:
    async def held() -> bool:
        lists = [await stage.references(name) for name in claims]
        return all("statefulsets/train" in references for references in lists)

    await stage.until(held, f"{claims} are held")


def instead(connection: Transport) -> Callable[[Transport], Transport]:
    """What takes this connection instead of the one that it is given."""
    return lambda _: connection


def administrator(stage: Stage) -> Remover:
    """Who takes claimctl out of the whole cluster."""
    return Remover(stage, namespaces=(), through=instead(stage.site.connection(PEOPLE)))


async def by_name(stage: Stage) -> dict[str, Pod]:
    return {pod.metadata.name: pod for pod in (await stage.client.list(PODS, NAMESPACE)).items}


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(STATEFULSETS, "train", {"spec": {"replicas": replicas}})

    async def scaled() -> bool:
        return len(await by_name(stage)) == replicas

    await stage.until(scaled, f"there are {replicas} pods")


async def until_entries(stage: Stage, pod: str, wanted: dict[str, str]) -> None:
    async def holds() -> bool:
        found = (await by_name(stage)).get(pod)
        return found is not None and entries(found) == wanted

    await stage.until(holds, f"{pod} names {wanted}")


async def until_claims(stage: Stage, *names: str) -> None:
    async def holds() -> bool:
        claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
        return sorted(claim.metadata.name for claim in claims) == sorted(names)

    await stage.until(holds, f"the claims are {names}", 200)


@pytest.mark.alone
async def test_an_uninstall_leaves_pods_alone_and_new_ones_get_generated_claims(
    stage: Stage,
) -> None:
    await trained(stage, 4, retention_policy="Persistent")
    await scale(stage, 3)
    before = {name: pod.metadata.uid for name, pod in (await by_name(stage)).items()}
    remover = administrator(stage)
    seen = await remover.look()
    assert [kind for kind, _, _ in reasons(seen)].count("MutatingAdmissionPolicyBinding") == 2
    messages = sorted(it.message for it in seen.left if it.kind == "ClaimReservation")
    assert messages[0].endswith("its claim goes with the pods that name it: train-0")
    assert messages[-1].endswith("its claim is deleted: no pod names it")
    done = await remover.run()
    assert reasons(done) == []
    claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    assert sorted(claim.metadata.name for claim in claims) == sts(0, 1, 2)
    assert not any(claim.metadata.deleting for claim in claims)
    assert {name: pod.metadata.uid for name, pod in (await by_name(stage)).items()} == before
    # the controller still runs, and makes nothing again
    await stage.quiet(10)
    assert await remover.clean()
    await stage.delete(PODS, "train-1")
    await until_entries(stage, "train-1", {"gpu": "template big"})
    await stage.until_running(3)
    await stage.delete(STATEFULSETS, "train")
    await until_claims(stage)


@pytest.mark.alone
async def test_without_a_controller_a_pod_whose_claim_was_not_made_is_named(stage: Stage) -> None:
    await trained(stage, 1)
    await stage.stop()
    await scale(stage, 2)
    await until_entries(stage, "train-1", {"gpu": f"claim {claim_of(1)}"})
    done = await administrator(stage).run()
    assert reasons(done) == [("Pod", "train-1", "WaitsForClaim")]
    assert f"(kubectl delete pod -n {NAMESPACE}" in done.left[0].message
    assert not (await stage.claim(claim_of(0))).metadata.deleting
    await stage.delete(PODS, "train-1")
    await until_entries(stage, "train-1", {"gpu": "template big"})
    await stage.until_running(2)
    assert await administrator(stage).clean()


WRITES = 6
"""How many writes the command makes for one sticky claim: it deletes both bindings, removes the
workload's setting and the pod's note, gives the claim to the pod, and deletes the hold."""


@pytest.mark.alone
async def test_an_uninstall_that_is_killed_at_any_write_is_continued_by_the_next(
    stage: Stage,
) -> None:
    remover = administrator(stage)
    await stage.started()
    await make_templates(stage, "big")
    for write in range(1, WRITES + 1):
        await install_policy(stage)
        await make_set(stage, 1, retention_policy="Persistent")
        await stage.until_running(1)
        await until_held(stage, claim_of(0))
        [before] = await stage.running()
        killed = DyingTransport(stage.site.connection(PEOPLE), write)
        killed.arm()
        with suppress(KubeError):
            await replace(remover, through=instead(killed)).run()
        assert killed.dead.is_set()
        assert reasons(await remover.run()) == []
        claim = await stage.claim(claim_of(0))
        owners = [owner.uid for owner in claim.metadata.owner_references]
        assert (owners, claim.metadata.deleting) == ([before.metadata.uid], False)
        assert [pod.metadata.uid for pod in await stage.running()] == [before.metadata.uid]
        await stage.delete(STATEFULSETS, "train")
        await until_claims(stage)


async def forget_policy(stage: Stage) -> None:
    """Put the policies of an earlier scenario out of force."""
    objects = Objects(stage.site.connection(PEOPLE), stage.clock)
    for document in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        if document["kind"].endswith("Binding"):
            await objects.delete(document)
    await stage.quiet(2)


async def diagnosed(stage: Stage) -> list[tuple[str, str]]:
    """Verdict and message of each line of ``claimctl doctor`` about sticky claims."""
    lines = diagnosis(await examine(stage.client, stage.clock, namespace=NAMESPACE))
    return [(line.verdict, line.message) for line in lines if line.check == "sticky-claims"]


@pytest.mark.alone
async def test_the_doctor_says_what_keeps_workloads_from_sticky_claims(stage: Stage) -> None:
    await forget_policy(stage)
    await stage.started()
    await make_templates(stage, "big")
    assert await diagnosed(stage) == []
    await make_set(stage, 1)
    await stage.until_running(1)
    [(verdict, message)] = await diagnosed(stage)
    assert verdict == "problem"
    assert "/statefulset/train ask for sticky ones" in message
    assert "has no binding; run `claimctl install --component sticky-claims`" in message
    await install_policy(stage)
    [(_, message)] = await diagnosed(stage)
    assert "binding" not in message


def session(stage: Stage) -> Session:
    return Session(stage.client, stage.clock, NAMESPACE, stage.connect())


Printed = pytest.CaptureFixture[str]


async def explained(stage: Stage, capsys: Printed, target: str) -> str:
    kind, name = parse(target, CLAIM, (CLAIM, POD, *RESERVED_FOR), others=True)
    capsys.readouterr()
    await explain_object(session(stage), kind, name, Output.TABLE, watch=False)
    return capsys.readouterr().out


async def test_explain_says_what_a_pod_without_its_claim_waits_for(
    stage: Stage, capsys: Printed
) -> None:
    await install_policy(stage)
    await make_set(stage, 1)
    await until_entries(stage, "train-0", {"gpu": "claim train-0.sts.gpu.big"})
    told = await explained(stage, capsys, "pod/train-0")
    assert "claimctl has not made claim train-0.sts.gpu.big of ordinal 0 from template big" in told
    assert "See what keeps it from that: claimctl doctor" in told
    assert "Create claim" not in told
    told = await explained(stage, capsys, "statefulset/train")
    assert "asks for sticky claims (claimctl.io/sticky: '*'), and there is no" in told
    assert "Create claim" not in told
    await stage.started()
    await stage.until_condition("Reserved", "False", "TemplateNotFound")
    told = await explained(stage, capsys, "pod/train-0")
    assert "template big (TemplateNotFound): ResourceClaimTemplate big does not exist" in told


@pytest.mark.alone
async def test_explain_names_the_pods_that_have_generated_claims(
    stage: Stage, capsys: Printed
) -> None:
    await forget_policy(stage)
    await stage.started()
    await make_templates(stage, "big")
    await make_set(stage, 1)
    await stage.until_running(1)
    told = await explained(stage, capsys, "pod/train-0")
    assert "StickyNotInForce: the pod asks for sticky claims, and has generated ones" in told
    assert "Put the policy in force (claimctl install --component sticky-claims)" in told
    told = await explained(stage, capsys, "statefulset/train")
    assert "pods have generated claims, which go with them: train-0" in told
    assert "claimctl.io/reserve=*" not in told
    await install_policy(stage)
    await stage.create(RESOURCECLAIMS, manifests.claim(claim_of(0)))
    await stage.delete(PODS, "train-0")
    await stage.until_condition("Ready", "False", "StickyNameTaken")
    told = await explained(stage, capsys, claim_of(0))
    assert "Delete the claim and its pod; then claimctl makes the ordinal's claim." in told


async def ask_for_other(stage: Stage) -> None:
    """Let the next pods have claims of another template; those that are there stay."""
    wanted = [{"name": "gpu", "resourceClaimTemplateName": "other"}]
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    spec = {"updateStrategy": strategy, "template": {"spec": {"resourceClaims": wanted}}}
    await stage.patch(STATEFULSETS, "train", {"spec": spec})


async def test_commands_show_whose_claims_they_are(stage: Stage, capsys: Printed) -> None:
    await trained(stage, 11)
    await make_templates(stage, "other")
    await scale(stage, 2)
    await stage.quiet(2)
    wanted = ClaimsWanted("", sort_by="", head=False)
    capsys.readouterr()
    await get(session(stage), wanted, Output.WIDE, watch=False)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == sts(*range(11))
    assert [row[-2] for row in rows] == [str(ordinal) for ordinal in range(11)]
    told = await explained(stage, capsys, claim_of(10))
    assert "holds (IdleTimeoutNotReached)" in told
    assert "the claim of ordinal 10; scaled away, it is kept like that of an idle work" in told
    await release(
        session(stage), ReleaseWanted(claim_of(10), dry_run=False, wait=60, output=Output.TABLE)
    )
    released = await stage.claim(claim_of(10))
    assert (released.status.allocation, released.metadata.deleting) == (None, False)
    await ask_for_other(stage)
    await stage.delete(PODS, "train-1")
    await until_claims(stage, claim_of(0), "train-1.sts.gpu.other")
    await stage.until_running(2)
    told = await explained(stage, capsys, "statefulset/train")
    assert "ordinals whose claim the pod template does not ask for now: 0\n" in told
    told = await explained(stage, capsys, claim_of(0))
    assert "the pod template asks for another claim now, so it is deleted when no pod" in told
    await tree.run(session(stage), [], Output.TABLE, every_pod=False)
    await timeline.run(session(stage), claim_of(0), Output.TABLE)
    told = capsys.readouterr().out
    assert "uses ResourceClaim/train-1.sts.gpu.other (Held, held by statefulsets/train)" in told
    assert "held for statefulsets.apps/train" in told


@pytest.mark.alone
async def test_pods_run_on_while_a_downgrade_takes_the_holds_away(stage: Stage) -> None:
    await trained(stage, 2)
    before = {name: pod.metadata.uid for name, pod in (await by_name(stage)).items()}
    assert await prepared(stage) == PlanPhase.PREPARED
    assert await stage.references(claim_of(0)) == ("pods/train-0",)
    await stage.delete(PODS, "train-1")
    await stage.until_running(2)
    await until_entries(stage, "train-1", {"gpu": f"claim {claim_of(1)}"})
    assert (await by_name(stage))["train-0"].metadata.uid == before["train-0"]
    back = await plans.begin_restore(stage.client, None)
    assert back is not None
    await plans.follow(stage.client, back, lambda _: None)
    await until_held(stage, *sts(0, 1))
    await plans.end(stage.client)
