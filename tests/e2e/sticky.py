"""Workloads whose pods ask for sticky claims, and the admission policy that names these claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from claimctl.kube.errors import ApiError
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, RESOURCECLAIMTEMPLATES
from claimctl_demo.documents import DocumentClient
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import DEVICE_CLASS, NAMESPACE, Stage
from tests.e2e.site import PEOPLE

STICKY, REWRITTEN = "claimctl.io/sticky", "claimctl.io/sticky-claims"
FILE = Path(__file__).parents[2] / "deploy/components/sticky-claims/sticky-claims.yaml"
Body = dict[str, Any]


async def install_policy(stage: Stage) -> None:
    """Install the policy, once for each cluster; returns when it is in force."""
    client = DocumentClient(stage.site.connection(PEOPLE), "people")
    for document in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        try:
            await client.create(document)
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
    probe = asking(manifests.stateful_set("probe"), "*", ("gpu", "template"))["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "probe", "uid": "probe"}
    probe["metadata"] |= {"name": "probe-0", "ownerReferences": [{**owner, "controller": True}]}
    probe["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = "0"

    async def in_force() -> bool:
        made = await stage.client.create(PODS, probe, NAMESPACE, dry_run=True)
        return made.metadata.annotation(REWRITTEN) is not None

    await stage.until(in_force, "the policy is in force")


def asking(body: Body, sticky: str | None, *entries: tuple[str, str]) -> Body:
    """The workload with these entries of names and templates, and the annotation in its pod
    template; None: without the annotation."""
    template = body["spec"]["template"]
    if sticky is not None:
        template["metadata"].setdefault("annotations", {})[STICKY] = sticky
    [container] = template["spec"]["containers"]
    container["resources"] = {"claims": [{"name": name} for name, _ in entries]}
    template["spec"]["resourceClaims"] = [
        {"name": name, "resourceClaimTemplateName": wanted} for name, wanted in entries
    ]
    return body


async def make_templates(stage: Stage, *names: str, device_class: str = DEVICE_CLASS) -> None:
    for name in names:
        await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template(name, device_class))


async def pods(stage: Stage, count: int) -> list[Pod]:
    """The pods in the order of their names, as soon as there are so many."""

    async def there() -> bool:
        return len((await stage.client.list(PODS, NAMESPACE)).items) >= count

    await stage.until(there, f"there are {count} pods")
    found = (await stage.client.list(PODS, NAMESPACE)).items
    return sorted(found, key=lambda pod: pod.metadata.name)


LIFE_WRITES = 11
"""How many writes the controller makes about the life of one sticky claim."""


async def live(
    stage: Stage,
    transport: DyingTransport,
    claim: str,
    holder: str,
    scale_away: Callable[[], Awaitable[None]],
) -> None:
    """Let the claim of a workload be held, and then go with its ordinal; or only until the
    controller of the transport dies."""

    async def runs() -> bool:
        return transport.dead.is_set() or (
            bool(await stage.running()) and holder in await stage.references(claim)
        )

    async def over() -> bool:
        return transport.dead.is_set() or not await stage.reservations()

    await stage.until(runs, "the controller dies or holds the claim")
    if not transport.dead.is_set():
        await scale_away()
        await stage.until(over, "the controller dies or all is gone", 120)


def entries(pod: Pod) -> dict[str, str]:
    """What each entry of a pod names: ``claim NAME`` or ``template NAME``."""
    return {
        each.name: (
            f"template {each.resource_claim_template_name}"
            if each.resource_claim_name is None
            else f"claim {each.resource_claim_name}"
        )
        for each in pod.spec.resource_claims
    }


def all_entries(found: Iterable[Pod]) -> list[dict[str, str]]:
    return [entries(pod) for pod in found]
