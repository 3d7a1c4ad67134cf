"""``claimctl explain node/NAME``: which claims have devices or pods on a node, before a drain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from claimctl.cli.documents import Document, Part, says
from claimctl.cli.errors import CommandFailed
from claimctl.cli.session import Session
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.get_work import ClaimsWanted, gather
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.text import counted, fact
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import Node
from claimctl.wire.reservations import NEVER_REALLOCATED
from claimctl.wire.resources import NODES

_GIVEN_UP = (
    "Pods of a held claim can start only where its devices are. While the node takes no pods, "
    "claimctl gives a claim up as soon as a pod waits for it and none uses it; then it gets other "
    "devices."
)


class ClaimOnNode(Part, frozen=True):
    """A claim that has devices on the node, or pods there."""

    namespace: str
    name: str
    state: str
    devices: tuple[str, ...]
    holders: str
    pods: Annotated[int, says("pods on this node that use it")]
    never_given_up: bool

    @property
    def is_held(self) -> bool:
        """Whether a workload holds it, whatever its state says beside that in brackets."""
        return self.state.partition(" ")[0] == "Held"


class NodeExplanation(Document, frozen=True):
    """``claimctl explain node/NAME``"""

    name: str
    state: Annotated[str, says("Ready, Cordoned, NotReady, Gone, or Unknown to this user")]
    taints: tuple[str, ...]
    scope: Annotated[str, says("the namespace that was looked at; '' for all")]
    claims: tuple[ClaimOnNode, ...]


async def explain_node(session: Session, name: str) -> NodeExplanation:
    """Read the node and the claims of all namespaces, else those of the session's namespace.

    Raises:
        CommandFailed: neither the node nor a claim with devices or pods on it exists.
    """
    node, state = await _node(session.client, name)
    scope = ""
    try:
        views = await gather(session.client, session.clock.now(), ClaimsWanted(scope))
    except Forbidden:
        scope = session.namespace
        views = await gather(session.client, session.clock.now(), ClaimsWanted(scope))
    claims = tuple(_claims_on(name, views))
    if state == "Gone" and not claims:
        raise CommandFailed(f"node {name} not found, and no claim has devices or pods on it")
    taints = tuple(taint.text for taint in node.spec.taints) if node is not None else ()
    return NodeExplanation(name=name, state=state, taints=taints, scope=scope, claims=claims)


async def _node(client: Client, name: str) -> tuple[Node | None, str]:
    """The node, if it is there and may be read, and its state in one word."""
    try:
        node = await client.find(NODES, name)
    except Forbidden:
        return None, "Unknown"
    if node is None:
        return None, "Gone"
    if node.spec.unschedulable:
        return node, "Cordoned"
    ready = find_condition(node.status.conditions, "Ready")
    return node, "Ready" if ready is not None and ready.status == "True" else "NotReady"


def _claims_on(node: str, views: Iterable[ClaimView]) -> Iterator[ClaimOnNode]:
    """The claims with pods on the node, and those whose allocation names it: by its own name, or
    by its host name if the claim has no pods."""
    for view in views:
        if node not in {*view.nodes, *view.claim.nodes_named}:
            continue
        bound = view.consumers.bound.values()
        yield ClaimOnNode(
            namespace=view.namespace,
            name=view.name,
            state=view.shown_state,
            devices=view.devices,
            holders=view.holders,
            pods=sum(pod.spec.node_name == node for pod in bound),
            never_given_up=view.never_given_up,
        )


def node_lines(node: NodeExplanation) -> list[str]:
    """The explanation as text."""
    where = f" of namespace {node.scope}; you may not read all namespaces" if node.scope else ""
    taints = [fact("Taints", ", ".join(node.taints))] if node.taints else []
    return [
        fact("Node", node.name),
        fact("State", node.state),
        *taints,
        fact("Claims", f"{counted(len(node.claims), 'claim')} with devices or pods here{where}"),
        *(
            f"  {it.namespace}/{it.name}: {it.state}, {', '.join(it.devices) or 'no device'}, "
            f"listed: {it.holders or 'nobody'}, {counted(it.pods, 'pod')} here"
            for it in node.claims
        ),
        "What to do:",
        *(f"  {line}" for line in _advice(node)),
    ]


def _advice(node: NodeExplanation) -> Iterator[str]:
    held = [claim for claim in node.claims if claim.is_held]
    if not held:
        yield "No workload holds devices here: a drain is as without claimctl."
        return
    if node.state in ("Gone", "NotReady"):
        yield f"See what became of the pods: claimctl explain {held[0].name} -n {held[0].namespace}"
    yield _GIVEN_UP
    for claim in held:
        if claim.never_given_up:
            command = f"claimctl release {claim.name} -n {claim.namespace}"
            what = f"{claim.namespace}/{claim.name} is never given up by itself"
            yield f"{what} ({NEVER_REALLOCATED}): {command}"
