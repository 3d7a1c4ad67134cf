"""The document of ``claimctl doctor driver``."""

from __future__ import annotations

from typing import Annotated

from claimctl import __version__
from claimctl.cli.documents import Document, Names, Part, says
from claimctl.commands.drivers.manifests import Check
from claimctl.commands.drivers.verdict import (
    CheckStep,
    NodeSeen,
    answer_of,
    habits_of,
    not_tried,
    seen_in_words,
)


class TriedStep(Part, frozen=True):
    step: str
    result: str
    seconds: Annotated[float | None, says("how long the driver needed")]
    message: Annotated[str, says("who refused the step, and why")]


class CheckedNode(Part, frozen=True):
    node: str
    kubelet_version: str
    device: Annotated[str, says("pool/name of the device that the claim got")]
    habits: Names
    seen: str
    claimctl: Annotated[str, says("what claimctl does about it, and what is to be done")]
    complete: Annotated[bool, says("whether every step says something about the driver")]
    steps: tuple[TriedStep, ...]


class UntriedHabit(Part, frozen=True):
    habit: str
    needs: Annotated[str, says("what would show it")]


class DriverCheck(Document, frozen=True):
    """``claimctl doctor driver``"""

    claimctl: Annotated[str, says("the version of claimctl")]
    driver: str
    device_class: str
    namespace: str
    image: str
    nodes: tuple[CheckedNode, ...]
    not_tried: tuple[UntriedHabit, ...]
    left: Annotated[Names, says("what is still being deleted")]


def document(check: Check, nodes: list[NodeSeen], left: Names) -> DriverCheck:
    return DriverCheck(
        claimctl=__version__,
        driver=check.driver,
        device_class=check.device_class,
        namespace=check.namespace,
        image=check.image,
        nodes=tuple(_node(seen, check.driver) for seen in nodes),
        not_tried=tuple(
            UntriedHabit(habit=name, needs=needs) for name, needs in not_tried().items()
        ),
        left=left,
    )


def _node(seen: NodeSeen, driver: str) -> CheckedNode:
    return CheckedNode(
        node=seen.node,
        kubelet_version=seen.kubelet,
        device=seen.device,
        habits=habits_of(seen),
        seen=seen_in_words(seen),
        claimctl=answer_of(seen, driver),
        complete=seen.complete,
        steps=tuple(_step(step, seen) for step in CheckStep),
    )


def _step(step: CheckStep, seen: NodeSeen) -> TriedStep:
    outcome = seen.outcome(step)
    seconds = None if outcome.seconds is None else round(outcome.seconds, 1)
    return TriedStep(
        step=str(step), result=str(outcome.result), seconds=seconds, message=outcome.message
    )
