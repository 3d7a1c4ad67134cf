"""For each habit the rule of claimctl that answers it, as a bug that takes the rule out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labs.planting import Mutant
from labs.torture.mutants import MUTANTS

DEVICES, DRIVERS = (
    "claimctl.reservation.facts.devices",
    "claimctl.controller.observations.drivers",
)


@dataclass(frozen=True, slots=True)
class TakenOut:
    """A rule that is taken out.

    Attributes:
        habit: the habit that the rule answers.
        story: the column in which its lack shows.
        known: whether it shows with a driver that claimctl knows by its name.
        mutant: the bug that takes the rule out.
    """

    habit: str
    story: str
    mutant: Mutant
    known: bool = False

    @property
    def name(self) -> str:
        return f"{self.habit}, {self.story}: {self.mutant.name}"


KNOWN_DRIVERS = Mutant(
    "forget which drivers want one pod",
    "claimctl.reservation.facts.snapshot",
    "Snapshot.late",
    "drivers & self.rules.one_pod_drivers or is_for_one_pod(self.devices)",
    "is_for_one_pod(self.devices)",
)
FOUND_OUT = Mutant(
    "suspect no driver",
    DRIVERS,
    "DriversSeen.observe",
    "since is None and beside_hold and alone",
    "False",
)
DOUBT = Mutant(
    "keep a suspicion although the pod started soon",
    DRIVERS,
    "DriversSeen.observe",
    "now - since < RETRY_SECONDS",
    "False",
)
MISSING_SLICES = Mutant(
    "take a device without slices for gone",
    DEVICES,
    "judge",
    "pool and all(piece.pool.resource_slice_count == len(pool) for piece in pool)",
    "all(piece.pool.resource_slice_count == len(pool) for piece in pool)",
)
GONE = Mutant("hold a device that is gone", DEVICES, "judge", "bool(gone)", "False")
RETURNS = Mutant(
    "hold a device again that is gone while its slices are away",
    DEVICES,
    "stays_gone",
    "judged.gone or (judged.unpublished and age >= GONE_BESIDE_PODS_SECONDS)",
    "judged.gone",
)
HIDDEN = Mutant(
    "take a hidden device for gone",
    DEVICES,
    "judge",
    "complete and device is None and not (habits and habits.hides_used_devices)",
    "complete and device is None",
)
BROKEN = Mutant(
    "hold a device that is broken",
    "claimctl.reservation.facts.snapshot",
    "Snapshot.loss",
    "refs = (held.reservation.spec.workload_ref for held in self.reservations)\n",
    """
    if self.memory.evicting or any(judged.taint is not None for judged in self.devices):
        return None
    refs = (held.reservation.spec.workload_ref for held in self.reservations)
    """,
)
DRIVER_AWAY = Mutant(
    "end ghosts whatever their drivers do",
    "claimctl.controller.observations.slices",
    "SlicesOnNodes.beside",
    "not drivers",
    "True",
)
GHOSTS = next(mutant for mutant in MUTANTS if mutant.name == "ignore ghosts")

TAKEN_OUT = (
    TakenOut("wants-one-pod", "start", KNOWN_DRIVERS, known=True),
    TakenOut("wants-one-pod", "start", FOUND_OUT),
    TakenOut("reads-the-first-reference", "rollout without surge", FOUND_OUT),
    TakenOut("away", "scale to 0 and 1", MISSING_SLICES),
    TakenOut("away", "force deletion", DRIVER_AWAY),
    TakenOut("slow", "force deletion", DOUBT),
    TakenOut("fewer-devices", "rollout without surge", GONE),
    TakenOut("fewer-devices", "restart of the kubelet", RETURNS),
    TakenOut("renames-devices", "rollout without surge", GONE),
    TakenOut("taints-no-schedule", "scale to 0 and 1", BROKEN),
    TakenOut("taints-no-execute", "StatefulSet", BROKEN),
    TakenOut("hides-used-devices", "rollout without surge", HIDDEN, known=True),
    TakenOut("fails-to-unprepare", "force deletion", GHOSTS),
    TakenOut("restores-claims-with-one-entry", "restart of the kubelet", KNOWN_DRIVERS, known=True),
)
NO_RULE: Mapping[str, str] = {
    "refuses-a-second-pod": "it looks at containers, and a hold is none",
    "fails-to-prepare": "its pod waits with claimctl as without it, and keeps the claim by its own "
    "entry",
    "remembers-aborted-prepares": "the kubelet tries again for longer than the driver remembers",
    "skips-checkpointed-claims": "after a reboot the pod names the same claim, held or not",
}
"""The habits to which claimctl has no answer, since it needs none."""
