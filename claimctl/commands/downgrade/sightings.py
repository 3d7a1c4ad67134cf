"""What claims show about the feature gates of the scheduler and kube-controller-manager (KCM).

Both write lists, and managedFields show which component wrote which entry. A component with the
feature lists PodGroups (KEP-5729), or the workload of ``spec.reservedFor`` (KEP-5194); without it,
it lists each pod. So an entry shows what the component did when it wrote the entry.

A pod of a PodGroup that the scheduler or KCM lists by itself shows that the feature is off there
only if the pod is younger than the plan: before that, the list may have been written at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from claimctl.reservation.facts.references import is_pod, is_pod_group, uids_written_by
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod


class Component(StrEnum):
    """The components whose behaviour claims show; the values are also their field managers."""

    SCHEDULER = "kube-scheduler"
    CONTROLLER_MANAGER = "kube-controller-manager"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a component did to one claim, and when.

    Attributes:
        on: whether it acted as with the feature.
        claim: as namespace/name.
        what: what it did, as a clause for people: ``listed PodGroup gang``.
    """

    component: Component
    on: bool
    when: datetime
    claim: str
    what: str


def sightings(
    claim: ResourceClaim,
    pods: Iterable[Pod],
    replaced: Collection[Reference] = (),
    planned: datetime | None = None,
) -> Iterator[Sighting]:
    """What this claim and the pods that use it show. ``replaced`` are the references that the plan
    replaced by pods; ``planned`` is when it was created, None if there is no plan."""
    yield from _of_allocation(claim)
    names = {reference.name for reference in replaced if is_pod_group(reference)}
    members = [pod for pod in pods if pod.spec.group_name in names]
    for component in Component:
        yield from _of_groups(claim, component)
        if planned is not None:
            yield from _of_pods(claim, component, members, planned)


def newest(sightings: Iterable[Sighting]) -> dict[Component, Sighting]:
    """The newest sighting of each component. Of two at one time, the one with the feature on."""
    last: dict[Component, Sighting] = {}
    for sighting in sightings:
        known = last.get(sighting.component)
        if known is None or (sighting.when, sighting.on) > (known.when, known.on):
            last[sighting.component] = sighting
    return last


def _name_of(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _of_allocation(claim: ResourceClaim) -> Iterator[Sighting]:
    """KEP-5194: with the feature, the scheduler allocates a claim of a workload for any pod."""
    allocation = claim.status.allocation
    if allocation is None or claim.spec.reserved_for is None:
        return
    when = allocation.allocation_timestamp or claim.metadata.creation_timestamp
    if when is None:
        return
    on = allocation.reserved_for_any_pod
    what = "allocated it for any pod" if on else "allocated it for the pods that it lists"
    yield Sighting(Component.SCHEDULER, on, when, _name_of(claim), what)


def _of_groups(claim: ResourceClaim, component: Component) -> Iterator[Sighting]:
    """The scheduler and KCM list PodGroups while the feature (KEP-5729) is on."""
    entries = (it for it in claim.metadata.managed_fields if it.subresource == "status")
    when = max((it.time for it in entries if it.manager == component and it.time), default=None)
    written = uids_written_by(claim, component)
    listed = [
        entry for entry in claim.status.reserved_for if is_pod_group(entry) and entry.uid in written
    ]
    if listed and when is not None:
        text = f"listed PodGroup {listed[0].name}"
        yield Sighting(component, True, when, _name_of(claim), text)


def _of_pods(
    claim: ResourceClaim, component: Component, members: Collection[Pod], planned: datetime
) -> Iterator[Sighting]:
    """The scheduler and KCM list the pods of PodGroups one by one while the feature is off."""
    listed = {entry.uid for entry in claim.status.reserved_for if is_pod(entry)}
    written = listed & uids_written_by(claim, component) if members else frozenset()
    for pod in members:
        made = pod.metadata.creation_timestamp
        if pod.metadata.uid in written and made is not None and made > planned:
            text = f"listed pod {pod.metadata.name} of a PodGroup by itself"
            yield Sighting(component, False, made, _name_of(claim), text)
