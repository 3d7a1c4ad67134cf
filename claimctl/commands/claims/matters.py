"""What may be wrong with a claim, as one line with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.cli.documents import ReasonText


class MatterKind(StrEnum):
    """What is wrong, as a clause about the claim."""

    DEVICE_GONE = "its driver does not publish the device any more"
    DEVICE_TAINTED = "its device has a taint"
    DRIVER_AWAY = "its driver publishes nothing, and may be away"
    NODE_GONE = "its node does not exist any more"
    NODE_CORDONED = "its node is cordoned"
    NODE_TAINTED = "its node has a taint that its pods do not tolerate"
    NODE_NOT_READY = "its node is not ready"
    NO_DEVICE_CLASS = "its DeviceClass does not exist"
    TOO_MANY_DEVICES = "no node has as many devices as it asks for"
    NOT_READY = "a ClaimReservation cannot be served"
    HOLD_OFF = "its hold is off"
    RELEASE_WAITS = "its release waits"
    PODS_WAIT = "its pods wait"

    @property
    def reason(self) -> str:
        """The name as one word: DeviceGone."""
        return self.name.title().replace("_", "")


WRONG = "What is wrong with a claim"
SEE_THE_CLAIM = "`claimctl explain CLAIM` names it, and says what to do."


OF_DEVICES = frozenset(
    {
        MatterKind.DEVICE_GONE,
        MatterKind.DEVICE_TAINTED,
        MatterKind.DRIVER_AWAY,
        MatterKind.NODE_GONE,
        MatterKind.NODE_CORDONED,
        MatterKind.NODE_TAINTED,
        MatterKind.NODE_NOT_READY,
    }
)
"""What keeps pods from devices that the claim has. A release ends it."""
IN_VAIN = frozenset({MatterKind.NO_DEVICE_CLASS, MatterKind.TOO_MANY_DEVICES})
"""What keeps the claim from getting devices, however many become free."""


@dataclass(frozen=True, slots=True)
class Matter:
    """One thing that is wrong with a claim."""

    kind: MatterKind
    about: str
    """pool/device, ``node NAME``, or another part of the claim; '' if the text says it."""
    text: str
    steps: tuple[str, ...] = ()
    """What to do, each with the command to run."""
    word: str = ""
    """The reason that a condition has for it; '' if the kind says it."""

    @property
    def reason(self) -> str:
        """One word for it: DeviceGone."""
        return self.word or self.kind.reason

    @property
    def is_of_node(self) -> bool:
        return self.about.startswith("node ")

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


def reasons_of(matters: Iterable[Matter]) -> tuple[ReasonText, ...]:
    """The matters as parts of a document."""
    return tuple(ReasonText(reason=it.reason, message=str(it)) for it in matters)
