"""``claimctl release --node-is-off`` and ``--pod-has-ended``: pods that vanished run no more."""

from __future__ import annotations

from functools import partial

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.release_request import (
    ReleaseWanted,
    annotate_each,
    check_reserved,
    show,
)
from claimctl.kube.client import Client
from claimctl.reservation.users.statements import (
    ALL_PODS,
    about_node,
    about_pod,
    concerns,
    with_statement,
)
from claimctl.text import listed
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ENDED_PODS_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS, NODES, PODS


async def state_ended(client: Client, explanation: Explanation, wanted: ReleaseWanted) -> int:
    """State that pods of the claim that vanished have ended: from a node that is off, or one pod.

    The status need not name them: the controller may know of pods that it could not record.

    Raises:
        CommandFailed: the node is ready, the pod exists, or no ClaimReservation names the claim.
    """
    view, node, pod = explanation.view, wanted.node_is_off, wanted.pod_has_ended
    check_reserved(explanation)
    if node and await _is_ready(client, node):
        raise CommandFailed(
            f"node {node} is ready, so its kubelet ends its pods: wait for it, or switch the "
            "node off first"
        )
    if pod and pod != ALL_PODS and await client.find(PODS, pod, view.namespace) is not None:
        raise CommandFailed(f"pod {view.namespace}/{pod} exists: wait until it is gone")
    subject = about_node(node) if node else about_pod(pod)
    recorded = [
        ghost
        for reservation in view.reservations
        for ghost in reservation.status.force_deleted_pods
        if concerns(subject, ghost)
    ]
    if not wanted.dry_run:
        # pods that vanish later are not meant
        version = await client.version_now(CLAIMRESERVATIONS, view.namespace)
        stated = partial(with_statement, subject=subject, version=version, known=recorded)
        await annotate_each(client, explanation, ENDED_PODS_ANNOTATION, stated)
    verb = "would count no more (dry run)" if wanted.dry_run else "count no more"
    names = listed({ghost.name for ghost in recorded}) or "no status names one"
    head = f"pod {pod} has ended: such pods that vanished until now"
    if node:
        head = f"node {node} is off: pods that vanished from it"
    elif pod == ALL_PODS:
        head = "pods have ended: all that vanished until now"
    show([f"{head} {verb}: {names}"], explanation, wanted)
    return ExitCode.OK


async def _is_ready(client: Client, name: str) -> bool:
    node = await client.find(NODES, name)
    ready = find_condition(node.status.conditions, "Ready") if node is not None else None
    return ready is not None and ready.status == "True"
