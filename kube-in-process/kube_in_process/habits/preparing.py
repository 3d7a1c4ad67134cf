"""Habits that refuse a prepare or an unprepare, and what a driver remembers of them."""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.habits.habit import (
    PREPARE,
    UNPREPARE,
    Checkpointed,
    Habit,
    Situation,
    Stage,
)
from kube_in_process.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class WantsOnePod(Habit):
    """It refuses a claim unless ``status.reservedFor`` has one entry, and that is a pod.

    Seen with dranet v1.4.0, whose texts these are (pkg/driver/dra_hooks.go). Read in cilium
    (pkg/networkdriver/dra.go, main in August 2026) and in dra-driver-sriov (pkg/driver/dra_hook.go,
    main in August 2026).
    """

    name = "wants-one-pod"

    def refuses(self, verb: str, situation: Situation) -> str:
        if verb != PREPARE:
            return ""
        listed = situation.listed
        if len(listed) != 1:
            return f"driver only supports one pod per claim, got {len(listed)}"
        if not _is_pod(listed[0]):
            return f"driver only supports Pods, unsupported reference {listed[0]['resource']}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadsTheFirstReference(Habit):
    """It takes the first entry of ``status.reservedFor`` for the pod, and looks at no other.

    Read in HAMi's k8s-dra-driver (cmd/hami-kubelet-plugin/hami_core.go, main in September 2026),
    whose text this is. There it is only logged, and the container gets the folder of no pod. Here
    it is an error, so that it is seen.
    """

    name = "reads-the-first-reference"

    def refuses(self, verb: str, situation: Situation) -> str:
        if verb != PREPARE:
            return ""
        if not situation.listed:
            return f"claim {situation.uid} has no ReservedFor entries"
        if not _is_pod(situation.listed[0]):
            return f"claim {situation.uid} reservedFor[0] is not a Pod"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailsToPrepare(Habit):
    """It refuses every prepare with a text.

    Seen with NVIDIA's dra-driver-nvidia-gpu, main in September 2026, and with Intel's GPU driver
    1da939f, for devices that do not answer (cmd/gpu-kubelet-plugin/device_state.go,
    cmd/kubelet-gpu-plugin/driver.go).
    """

    name = "fails-to-prepare"
    text: str = "the device does not answer"

    def refuses(self, verb: str, situation: Situation) -> str:
        return self.text if verb == PREPARE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailsToUnprepare(Habit):
    """It refuses every unprepare with a text.

    Read in NVIDIA's dra-driver-nvidia-gpu, main in September 2026: while the GPU cannot be bound
    to its kernel driver again, Unprepare fails (cmd/gpu-kubelet-plugin/device_state.go,
    vfio-device.go).
    """

    name = "fails-to-unprepare"
    text: str = "the device does not answer"

    def refuses(self, verb: str, situation: Situation) -> str:
        return self.text if verb == UNPREPARE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemembersAbortedPrepares(Habit):
    """An unprepare after a prepare that failed leaves PrepareAborted in the checkpoint for 90 s.

    Meanwhile it refuses each prepare of the claim whose status is equal. So that prepares fail, the
    first one of a claim does: there, it waits for a daemon that this prepare starts.

    Read in NVIDIA's dra-driver-nvidia-gpu 0.4.1 and main in September 2026
    (cmd/compute-domain-kubelet-plugin/device_state.go; the 90 s are UnpreparedClaimEntryTTL in
    cleanup.go). The text is the driver's.
    """

    name = "remembers-aborted-prepares"
    kept_seconds: float = 90.0

    def refuses(self, verb: str, situation: Situation) -> str:
        known = situation.known
        if verb != PREPARE:
            return ""
        if known is None or self._is_over(known, situation):
            return "prepare devices failed: the daemon of the claim is not ready"
        if known.stage is Stage.ABORTED:
            return f"stale prepare for claim {situation.name}: claim prepare was already aborted"
        return ""

    def leaves(self, situation: Situation, error: str) -> Checkpointed | None:
        known = situation.known
        if known is not None and not self._is_over(known, situation):
            return known
        return Checkpointed(situation.claim, Stage.STARTED, situation.now, situation.boot)

    def remembers(self, situation: Situation) -> Checkpointed | None:
        known = situation.known
        if known is None or known.stage is Stage.COMPLETED:
            return None
        if known.stage is Stage.ABORTED:
            return known
        return Checkpointed(known.claim, Stage.ABORTED, situation.now, situation.boot)

    def _is_over(self, known: Checkpointed, situation: Situation) -> bool:
        """Whether an aborted prepare counts no more: it is old, or the status has changed."""
        if known.stage is not Stage.ABORTED:
            return False
        is_old = situation.now >= known.since + self.kept_seconds
        return is_old or known.claim.get("status") != situation.claim.get("status")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipsCheckpointedClaims(Habit):
    """After a reboot, it prepares no claim again that its checkpoint has as prepared.

    Read in HAMi's k8s-dra-driver v0.1.0 (cmd/hami-kubelet-plugin/device_state.go), whose text this
    is. Others give back what the checkpoint has, and the container cannot be created because its
    CDI file is gone: ROCm's k8s-gpu-dra-driver (cmd/gpu-kubeletplugin/state.go) and
    dra-example-driver (cmd/dra-example-kubeletplugin/state.go), both main in August 2026. Here the
    pod waits either way.
    """

    name = "skips-checkpointed-claims"

    def refuses(self, verb: str, situation: Situation) -> str:
        known = situation.known
        if verb != PREPARE or known is None or known.boot == situation.boot:
            return ""
        return (
            f"error preparing devices for claim {situation.name}:{situation.uid}: "
            "claims in PrepareCompleted state are not supported when HAMiCoreSupport enabled"
        )

    def survives_reboot(self, entry: Checkpointed) -> bool:
        return entry.stage is Stage.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoresClaimsWithOneEntry(Habit):
    """When it is started again, it finds only claims again whose list has one entry.

    What it does not find stays set up, and is not freed at the unprepare, which succeeds.

    Read in cilium (pkg/networkdriver/driver.go, restoreDevices; main in September 2026):
    'unexpected ReservedFor length 2 for claim, should be 1'.
    """

    name = "restores-claims-with-one-entry"

    def restores(self, claim: Object) -> bool:
        return len((claim.get("status") or {}).get("reservedFor") or ()) == 1


def _is_pod(reference: Object) -> bool:
    return not reference.get("apiGroup") and reference.get("resource") == "pods"
