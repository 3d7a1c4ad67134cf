"""The objects that a workload has made, and that may make pods after it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from claimctl.controller.caches.kinds import KindState
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.reservation.facts.workloads import judged
from claimctl.reservation.kinds.rules import Kind, Rule
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.workloads import CustomWorkload


async def children_left(
    client: Client,
    states: Mapping[Kind, KindState],
    state: KindState,
    namespace: str,
    uid: str,
    *,
    orphans_with: str = "",
) -> tuple[str, ...]:
    """The children of a workload, and their children, that may still make pods.

    A child that is being deleted makes none, nor does one that is idle or has ended by the rule of
    its own kind. A child without a rule counts for as long as it exists. Owners are compared by
    UID, so the workload may be gone.

    Args:
        orphans_with: the name of the claim, for a workload that is gone or being deleted. Of the
            children that cascade=orphan leaves without a controller, those count that name it.

    Raises:
        KubeError: a kind cannot be listed.
    """
    discovery = Discovery(client)
    objects: list[tuple[Kind, CustomWorkload]] = []
    for kind in state.rule.children:
        resource = await discovery.workload(kind)
        # a kind that is not served has no objects
        if resource is not None:
            listed = await client.list(resource, namespace)
            objects += [(kind, child) for child in listed.items]
    orphans = {child.metadata.uid for _, child in objects if _is_orphan(child, orphans_with)}
    family, grows = {uid} | orphans, True
    while grows:
        new = {child.metadata.uid for _, child in objects if family & _owners(child)} - family
        family, grows = family | new, bool(new)
    mine = [(kind, child) for kind, child in objects if child.metadata.uid in family]
    return tuple(
        sorted(
            f"{kind[1]} {child.metadata.name}"
            for kind, child in mine
            if not child.metadata.deleting and _may_make_pods(_rule(states, kind), child)
        )
    )


def _owners(child: CustomWorkload) -> set[str]:
    return {owner.uid for owner in child.metadata.owner_references}


def _is_orphan(child: CustomWorkload, claim: str) -> bool:
    """Whether the object has no controller and names the claim, wherever its pod template is."""
    if not claim or child.metadata.controller() is not None or not bytes(child.spec):
        return False
    # not decoded: others may nest a spec as deeply as they like
    named = rb'"resourceClaimName"\s*:\s*"%b"' % re.escape(claim).encode()
    return re.search(named, bytes(child.spec)) is not None


def _rule(states: Mapping[Kind, KindState], kind: Kind) -> Rule | None:
    state = states.get(kind)
    return state.rule if state is not None and not state.problem else shipped_rules().get(kind)


def _may_make_pods(rule: Rule | None, child: CustomWorkload) -> bool:
    verdict = judged(child, rule).verdict if rule is not None else None
    return verdict is None or not (verdict.idle or verdict.ended)
