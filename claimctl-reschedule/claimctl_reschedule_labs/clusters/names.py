"""What random clusters share: names, classes and chances."""

from __future__ import annotations

from random import Random
from typing import Any

Body = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SPACES = ("team", "other")
"""The namespaces of the workloads."""
SYSTEM = "kube-system"
BATCH = "dedicated"
"""The key of a taint that some pods tolerate."""
EXTRA = "example.com/nic"
"""An extended resource that some nodes have."""
PRIORITIES: dict[str, Body] = {
    "low": {"value": -10},
    "high": {"value": 1000},
    "patient": {"value": 500, "preemptionPolicy": "Never"},
}
DRIVER = "gpu.example.com"
CLASSES = ("gpu.example.com", "big.example.com", "nic.example.com")
"""All devices of a driver, those with much memory, and those of a second driver."""
NIC_DRIVER = "nic.example.com"


def chance(rng: Random, share: float) -> bool:
    return rng.random() < share


def claim_spec(rng: Random, device_class: str = "") -> Body:
    """The spec of a claim for devices of one class."""
    exactly: Body = {"deviceClassName": device_class or rng.choice(CLASSES)}
    if chance(rng, 0.15):
        exactly["count"] = 2
    if chance(rng, 0.15):
        selector = f'device.attributes["{DRIVER}"].model == "a"'
        if exactly["deviceClassName"] != CLASSES[2]:
            exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
