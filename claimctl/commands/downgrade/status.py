"""Judge how far a downgrade has come, which step is next, and what would happen in each component.

The order of a downgrade (KEP-5194 and KEP-5729, Upgrade / Downgrade): prepare; switch the feature
off in the scheduler and in kube-controller-manager (KCM); prepare again, because until then they
put PodGroups back; switch it off in the kubelets; switch it off in the API server last.

``_step`` chooses the next step, ``_todo`` says what to do in it, and ``_components`` what each
component does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import field as field_of

from claimctl.cli.documents import Document, Part, says
from claimctl.commands.downgrade.sightings import Component, Sighting
from claimctl.commands.downgrade.standing import PUT_BACK, Standing, StandingClaim
from claimctl.downgrade.crossing import OldObjects
from claimctl.downgrade.records import RecordState, is_carried_out
from claimctl.downgrade.under_way import (
    PREPARE_COMMAND,
    RESTORE_COMMAND,
    UPGRADE_RESTORE_COMMAND,
    prepare_command,
)
from claimctl.text import listed
from claimctl.wire.reservations import RESTORE, DowngradePlan


class Switch(StrEnum):
    """Whether a component acts as if the feature were on."""

    ON = "On"
    OFF = "Off"
    UNKNOWN = "Unknown"


class DowngradeStep(StrEnum):
    """The next step. ``PREPARE`` to ``DONE`` are the way off, in order."""

    PREPARE = "Prepare"
    SWITCH_OFF_SCHEDULERS = "SwitchOffSchedulers"
    """In the scheduler and in kube-controller-manager."""
    PREPARE_AGAIN = "PrepareAgain"
    SWITCH_OFF_KUBELETS = "SwitchOffKubelets"
    SWITCH_OFF_API_SERVER = "SwitchOffAPIServer"
    UPGRADE = "Upgrade"
    """After ``claimctl upgrade prepare``: the cluster itself."""
    DONE = "Done"
    RESTORE = "Restore"


class ComponentName(StrEnum):
    """The components as the command names them."""

    API_SERVER = "api-server"
    SCHEDULER = "scheduler"
    CONTROLLER_MANAGER = "kube-controller-manager"
    KUBELETS = "kubelets"


@dataclass(frozen=True, slots=True)
class Kubelet:
    """What the pods on one node show.

    Attributes:
        pods: how many bound pods of the claims are on the node.
        unlisted: how many of them have no entry of their own; the kubelet starts those only with
            the feature.
        first: the first of the unlisted pods.
        running: an unlisted pod that runs, or ''.
        refused: an unlisted pod that the kubelet has refused and that has not started, or ''.
    """

    pods: int = 0
    unlisted: int = 0
    first: str = ""
    running: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """The state of the cluster, read live.

    Attributes:
        served: whether the API server keeps the feature's fields; None if this is not known.
        why: how ``served`` was found out, or why it is not known.
        used: whether claims or the plan's records show that the feature was in use.
        last: the newest sighting of each component.
        believed_off: the components in which the administrator says that the feature is off.
        kubelets: by node.
    """

    served: bool | None
    why: str = ""
    used: bool = False
    groups: bool = False
    """Whether the feature is, or was, sharing through PodGroups (KEP-5729)."""
    plan: DowngradePlan | None = None
    claims: tuple[StandingClaim, ...] = ()
    last: Mapping[Component, Sighting] = field(default_factory=dict)
    kubelets: Mapping[str, Kubelet] = field(default_factory=dict)
    believed_off: Collection[ComponentName] = ()
    old: OldObjects | None = None
    """For an upgrade: the objects that have to be gone; None if their version is not served."""


class ComponentState(Part, frozen=True):
    part: ComponentName = field_of(name="component")
    node: Annotated[str, says("of a kubelet")]
    switch: Switch = field_of(name="feature")
    now: Annotated[str, says("what happens now, or would happen")]
    refuses: Annotated[bool, says("whether it keeps pods from starting now")]


class DowngradeStatus(Document, frozen=True):
    """``claimctl downgrade status`` and ``upgrade status``"""

    step: Annotated[str, says("the next one")]
    todo: Annotated[str, says("what to do next, for people")]
    command: Annotated[str, says("'' if the step is not a command of claimctl")]
    clear: Annotated[bool, says("whether nothing is in the way of the step")]
    ready: int = field_of(name="readyClaims", default=0)
    components: tuple[ComponentState, ...] = ()
    claims: Annotated[tuple[StandingClaim, ...], says("those that are not ready")] = ()

    @property
    def blocked(self) -> int:
        return sum(claim.standing is Standing.BLOCKED for claim in self.claims)


def judge(look: Look) -> DowngradeStatus:
    """The report about one look at the cluster."""
    waiting = tuple(claim for claim in look.claims if claim.standing is not Standing.LISTED)
    components = tuple(_components(look))
    step = _step(look, waiting, {component.part: component.switch for component in components})
    todo, command = _todo(step, look, waiting)
    blocked = any(claim.standing is Standing.BLOCKED for claim in waiting)
    return DowngradeStatus(
        step=step,
        todo=todo,
        command=command,
        clear=not blocked and not any(component.refuses for component in components),
        ready=len(look.claims) - len(waiting),
        components=components,
        claims=waiting,
    )


def _step(
    look: Look, waiting: tuple[StandingClaim, ...], switches: Mapping[ComponentName, Switch]
) -> DowngradeStep:
    plan = look.plan
    if plan is not None and plan.spec.action == RESTORE:
        return DowngradeStep.RESTORE
    if plan is not None and plan.spec.upgrade_to:
        return _step_of_upgrade(look, plan, waiting)
    due = [standing for standing in waiting if standing.standing is not Standing.SKIPPED]
    two_passes = look.used or switches[ComponentName.API_SERVER] is not Switch.OFF
    if not due and switches[ComponentName.API_SERVER] is Switch.OFF:
        return DowngradeStep.DONE
    if plan is None or not is_carried_out(plan):
        return DowngradeStep.PREPARE
    schedulers_off = switches[ComponentName.SCHEDULER] is Switch.OFF and (
        switches[ComponentName.CONTROLLER_MANAGER] is not Switch.ON
    )
    prepared = {claim.uid for claim in plan.status.claims if claim.state == RecordState.EXPANDED}
    first_pass = any(it.standing is Standing.BLOCKED or it.uid not in prepared for it in due)
    if due and (first_pass or not two_passes):
        return DowngradeStep.PREPARE
    if not schedulers_off:
        return DowngradeStep.SWITCH_OFF_SCHEDULERS
    if due:
        return DowngradeStep.PREPARE_AGAIN
    if ComponentName.KUBELETS not in look.believed_off:
        return DowngradeStep.SWITCH_OFF_KUBELETS
    return DowngradeStep.SWITCH_OFF_API_SERVER


def _step_of_upgrade(
    look: Look, plan: DowngradePlan, waiting: Collection[StandingClaim]
) -> DowngradeStep:
    if look.old is None:
        return DowngradeStep.RESTORE
    ready = is_carried_out(plan) and not waiting and not look.old.own and not look.old.foreign
    return DowngradeStep.UPGRADE if ready else DowngradeStep.PREPARE


_NO_USE = ": no claim depends on the feature"
_LAST_PARTS = {
    DowngradeStep.SWITCH_OFF_KUBELETS: "kubelets, node by node",
    DowngradeStep.SWITCH_OFF_API_SERVER: "API server",
}


def _todo(step: DowngradeStep, look: Look, waiting: Collection[StandingClaim]) -> tuple[str, str]:
    upgrade_to = look.plan.spec.upgrade_to if look.plan is not None else ""
    command = PREPARE_COMMAND if look.plan is None else prepare_command(look.plan.spec)
    blocked = sum(standing.standing is Standing.BLOCKED for standing in waiting)
    match step:
        case DowngradeStep.PREPARE:
            text = f"{'solve the blocked claims, then ' if blocked else ''}run `{command}`"
            if look.plan is None and look.served is False and not look.used:
                return f"nothing{_NO_USE}, and it is off; to end the holds too, {text}", ""
            return text, command
        case DowngradeStep.SWITCH_OFF_SCHEDULERS:
            both = "the scheduler and in kube-controller-manager"
            text = f"switch the feature off in {both if look.groups else 'the scheduler'}"
            return f"{text}, then run `{command}` again", ""
        case DowngradeStep.PREPARE_AGAIN:
            return f"run `{command}` again, until nothing comes back", command
        case DowngradeStep.SWITCH_OFF_KUBELETS | DowngradeStep.SWITCH_OFF_API_SERVER:
            return f"switch the feature off in the {_LAST_PARTS[step]}", ""
        case DowngradeStep.UPGRADE:
            return f"upgrade the cluster to {upgrade_to}, then run `{UPGRADE_RESTORE_COMMAND}`", ""
        case DowngradeStep.RESTORE:
            restore = UPGRADE_RESTORE_COMMAND if upgrade_to else RESTORE_COMMAND
            return f"run `{restore}` until it exits 0", restore
        case DowngradeStep.DONE:
            back = f"; `{RESTORE_COMMAND}` is the way back"
            return f"nothing is left to do{back if look.plan else _NO_USE}", ""


# -- components


def _components(look: Look) -> Iterable[ComponentState]:
    yield _api_server(look)
    yield _seen_component(look, ComponentName.SCHEDULER, Component.SCHEDULER)
    if look.groups or Component.CONTROLLER_MANAGER in look.last:
        manager = Component.CONTROLLER_MANAGER
        yield _seen_component(look, ComponentName.CONTROLLER_MANAGER, manager)
    else:
        now = "does the same with and without this feature"
        yield _state(ComponentName.CONTROLLER_MANAGER, Switch.OFF, now)
    if not look.kubelets:
        now = "no bound pod uses a claim of this feature"
        yield _state(ComponentName.KUBELETS, _belief(look, ComponentName.KUBELETS), now)
    for node in sorted(look.kubelets):
        yield _kubelet(node, look)


def _state(
    part: ComponentName, switch: Switch, now: str, node: str = "", *, refuses: bool = False
) -> ComponentState:
    return ComponentState(part=part, node=node, switch=switch, now=now, refuses=refuses)


def _belief(look: Look, part: ComponentName) -> Switch:
    return Switch.OFF if part in look.believed_off else Switch.UNKNOWN


def _api_server(look: Look) -> ComponentState:
    part = ComponentName.API_SERVER
    if look.served is None:
        return _state(part, _belief(look, part), look.why)
    if look.served:
        return _state(part, Switch.ON, f"keeps the feature's fields: {look.why}")
    return _state(part, Switch.OFF, f"drops the feature's fields: {look.why}")


_ACTS = {
    Component.SCHEDULER: (
        "lists each pod that it schedules",
        "shares claims without listing their pods; it puts a workload or PodGroup back",
    ),
    Component.CONTROLLER_MANAGER: (
        "lists each bound pod that a list lacks",
        "puts the PodGroup back into a list that lacks a bound pod",
    ),
}
"""What a component does without the feature, and with it."""


def _seen_component(look: Look, part: ComponentName, component: Component) -> ComponentState:
    """What a component did last. A sighting with the feature on outweighs the administrator's word
    only if it is a PodGroup that is listed now."""
    last = look.last.get(component)
    if last is None:
        believed = part in look.believed_off
        now = "switched off, as you say" if believed else "no claim shows what it does"
        return _state(part, _belief(look, part), now)
    # it put a PodGroup back after the plan had prepared the claim
    put_back = (f"{it.namespace}/{it.name}" for it in look.claims if it.reason == PUT_BACK)
    if last.on and part in look.believed_off and last.claim not in put_back:
        now = f"switched off, as you say; before, it {last.what}"
        return _state(part, Switch.OFF, now)
    seen = f"it {last.what} ({last.claim}, {last.when:%Y-%m-%dT%H:%M:%SZ})"
    now = f"{_ACTS[component][last.on]}: {seen}"
    return _state(part, Switch.ON if last.on else Switch.OFF, now)


def _kubelet(node: str, look: Look) -> ComponentState:
    kubelet, part = look.kubelets[node], ComponentName.KUBELETS
    if kubelet.refused:
        now = f"refuses pods that are not listed: {kubelet.refused}; see its events"
        return _state(part, Switch.OFF, now, node, refuses=True)
    if not kubelet.unlisted:
        now = f"starts each of its {kubelet.pods} pods with and without the feature: all are listed"
        return _state(part, _belief(look, part), now, node)
    now = (
        f"without the feature it would refuse {kubelet.unlisted} of its {kubelet.pods} pods when "
        f"their sandboxes are made anew, first {listed([kubelet.first])}"
    )
    return _state(part, Switch.ON if kubelet.running else _belief(look, part), now, node)
