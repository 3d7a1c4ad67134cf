"""One eviction: look at the pod, compare it with what the plan saw, evict it by its UID.

The look comes first because an eviction that fails on its precondition has charged the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.kube import errors
from claimctl.kube.client import Client
from claimctl.wire.base import Object, Present
from claimctl.wire.resources import PODS, read_as
from claimctl_reschedule.plan.facts import facts_of
from claimctl_reschedule.plan.plan import Facts, Move, PodRef
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod

_PODS = read_as(PODS, Present)
_TWO_BUDGETS = "more than one PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class Evicted:
    """The server has accepted the eviction."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Not now; another try may succeed. ``unsure``: the server may have evicted the pod."""

    reason: Ground
    detail: str
    unsure: bool = False


Answer = Evicted | Refused | Obstacle
"""An ``Obstacle`` is for good: the pod is left alone."""


async def present(client: Client, pod: PodRef) -> SchedulingPod | None:
    """The pod as it is; None if it is gone, or about to be."""
    known = await client.find(SCHEDULING_PODS, pod.name, pod.namespace)
    stays = known is not None and known.metadata.uid == pod.uid and not known.metadata.deleting
    return known if stays else None


async def look(client: Client, move: Move, *, unsure: bool = False) -> Obstacle | Evicted | None:
    """Whether the pod is as the plan saw it: then None. ``unsure``: an earlier eviction had no
    answer. If the pod is going now, it was accepted."""
    pod = await client.find(SCHEDULING_PODS, move.pod.name, move.pod.namespace)
    if pod is None:
        return Evicted() if unsure else Obstacle(Ground.CHANGED, "the pod is gone")
    if unsure and (pod.metadata.deleting or pod.metadata.uid != move.pod.uid):
        return Evicted()
    changes = difference(pod, move)
    return Obstacle(Ground.CHANGED, changes) if changes else None


def difference(pod: SchedulingPod, move: Move) -> str:
    """What has changed since the plan was made, in one line; '' if nothing has."""
    if pod.metadata.uid != move.pod.uid:
        return "another pod has the name now"
    if pod.metadata.deleting:
        return "the pod is being deleted"
    if pod.spec.node_name != move.pod.node:
        return f"the pod is on {pod.spec.node_name or 'no node'} now"
    now = facts_of(pod)
    names = Facts.__struct_fields__
    changed = [name for name in names if getattr(now, name) != getattr(move.facts, name)]
    return f"changed since the plan: {', '.join(changed)}" if changed else ""


async def evict(
    client: Client, move: Move, grace_period_seconds: int | None, *, dry_run: bool = False
) -> Answer:
    """Send the eviction. Raises Forbidden or Unauthorized: then no other eviction would succeed."""
    pod = move.pod
    try:
        await post_eviction(client, pod, grace_period_seconds, dry_run=dry_run)
    except (errors.Forbidden, errors.Unauthorized):
        raise
    except errors.NotFound:
        return Obstacle(Ground.CHANGED, "the pod is gone")
    except errors.Conflict:
        return Obstacle(Ground.CHANGED, "another pod has the name now")
    except errors.TooManyRequests as error:
        return Refused(Ground.REFUSED, error.message)
    except (errors.Unreachable, errors.RequestTimeout) as error:
        return Refused(Ground.FAILED, str(error), unsure=not dry_run)
    except errors.ServerError as error:
        if _TWO_BUDGETS in error.message:
            return Obstacle(Ground.TWO_BUDGETS, error.message)
        return Refused(Ground.FAILED, str(error), unsure=not dry_run)
    except errors.ApiError as error:
        return Obstacle(Ground.FAILED, str(error))
    return Evicted()


async def post_eviction(
    client: Client, pod: PodRef, grace_period_seconds: int | None = None, *, dry_run: bool = False
) -> None:
    """Evict a pod if it still has this UID.

    Args:
        grace_period_seconds: for the pod's containers; None means as the pod says.

    Raises:
        TooManyRequests: a disruption budget does not allow the eviction now.
        Conflict: the pod has another UID; its budget was charged all the same.
        NotFound: the pod is gone.
        ServerError: 500 if several budgets select the pod.
    """
    options: Object = {"preconditions": {"uid": pod.uid}}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    await client.create(
        _PODS, body, pod.namespace, name=pod.name, subresource="eviction", dry_run=dry_run
    )
