"""The calls that drivers get from kubelets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a kubelet for one claim that a driver has answered.

    Args:
        verb: 'prepare' (NodePrepareResources) or 'unprepare' (NodeUnprepareResources).
        claim: namespace/name.
        uid: the UID of the claim.
        node: the node of the kubelet.
        asked: when the kubelet called, in seconds of the driver's clock.
        time: when the driver answered.
        error: the text of the refusal, or ''.
        devices: what was prepared, as ``pool/device``.
        version: the claim's resourceVersion when the driver read the devices to prepare.
    """

    verb: str
    claim: str
    uid: str
    node: str
    asked: float
    time: float
    error: str = ""
    devices: tuple[str, ...] = ()
    version: int = 0

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Call:
        """A call from plain JSON."""
        return cls(**{**written, "devices": tuple(written["devices"])})
