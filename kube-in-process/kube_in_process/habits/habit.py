"""What a habit is: answers to the questions that a driver asks itself, each with a default."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from kube_in_process.objects import Object

PREPARE, UNPREPARE = "prepare", "unprepare"
"""The calls of kubelets: NodePrepareResources and NodeUnprepareResources."""


class NotPlayed(Exception):
    """A habit that a cluster cannot play."""


class Stage(StrEnum):
    """How far a claim got in a driver's checkpoint."""

    STARTED = "PrepareStarted"
    COMPLETED = "PrepareCompleted"
    ABORTED = "PrepareAborted"


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A claim in the checkpoint of a driver on one node.

    Attributes:
        claim: the claim as the driver read it for the prepare.
        stage: how far it got.
        since: when it got there, in seconds of the driver's clock.
        boot: the boot of the node in which it got there.
    """

    claim: Object
    stage: Stage
    since: float = 0.0
    boot: str = ""


Checkpoint = Mapping[str, Checkpointed]
"""What a driver remembers on one node, by the UID of the claim."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a driver knows when a kubelet calls it for a claim.

    Attributes:
        claim: the claim as the API server has it now; at an unprepare, as it was prepared.
        checkpoint: what the driver remembers on the node.
        now: seconds of the driver's clock.
        boot: the boot of the node.
    """

    claim: Object
    checkpoint: Checkpoint
    now: float = 0.0
    boot: str = ""

    @property
    def uid(self) -> str:
        return str(self.claim["metadata"]["uid"])

    @property
    def name(self) -> str:
        meta = self.claim["metadata"]
        return f"{meta.get('namespace', '')}/{meta['name']}"

    @property
    def known(self) -> Checkpointed | None:
        """What the checkpoint has of the claim."""
        return self.checkpoint.get(self.uid)

    @property
    def listed(self) -> list[Object]:
        """The entries of ``status.reservedFor``."""
        return list((self.claim.get("status") or {}).get("reservedFor") or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A habit of a driver. Each method answers as a driver without habits does.

    Attributes:
        node: the node on which the driver has the habit; '' means on all.
    """

    name: ClassVar[str] = ""
    """The habit's name, the same everywhere."""
    publishes: ClassVar[bool] = False
    """Whether it changes what the driver publishes."""
    needs_nri: ClassVar[bool] = False
    """Whether the driver acts by NRI, when a container is created. Nodes without NRI cannot play
    it."""

    node: str = ""

    # Calls

    def is_there(self) -> bool:
        """Whether kubelets have the driver registered."""
        return True

    def seconds(self, verb: str) -> float:
        """How long a call takes."""
        return 0.0

    def refuses(self, verb: str, situation: Situation) -> str:
        """Why the driver refuses a call, or ''."""
        return ""

    def refuses_container(self, claim: Object, pod: str, pods: Collection[str]) -> str:
        """Why a container of a pod (UID) must not be created, or ''.

        Args:
            pods: the UIDs of the other pods on the node whose containers use the claim.
        """
        return ""

    # The checkpoint

    def leaves(self, situation: Situation, error: str) -> Checkpointed | None:
        """What a prepare that was refused leaves in the checkpoint."""
        return situation.known

    def remembers(self, situation: Situation) -> Checkpointed | None:
        """What an unprepare leaves in the checkpoint."""
        return None

    def survives_reboot(self, entry: Checkpointed) -> bool:
        """Whether an entry of the checkpoint counts after a reboot."""
        return False

    def restores(self, claim: Object) -> bool:
        """Whether the driver finds a prepared claim again when it is started again.

        Args:
            claim: as the API server has it at that moment.
        """
        return True

    # What is published

    def has(self, devices: Sequence[Object]) -> list[Object]:
        """The devices of a node that the driver knows."""
        return list(devices)

    def shows(self, devices: Sequence[Object], used: Collection[str]) -> list[Object]:
        """The devices that it publishes, of those that it has.

        Args:
            used: the names of the devices that are prepared.
        """
        return list(devices)
