"""Habits that change which devices a driver publishes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kube_in_process.habits.habit import Habit
from kube_in_process.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class FewerDevices(Habit):
    """It was started with fewer devices: some are gone, in a new generation of the pool.

    Seen with dra-example-driver 31914ce (cmd/dra-example-kubeletplugin/driver.go, restarted with
    2 of 4 GPUs), NVIDIA's and Intel's drivers (a card was taken out).
    """

    name = "fewer-devices"
    publishes = True
    gone: tuple[str, ...] = ("dev-0",)

    def has(self, devices: Sequence[Object]) -> list[Object]:
        return [device for device in devices if device["name"] not in self.gone]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamesDevices(Habit):
    """It publishes its devices under other names, in a new generation of the pool.

    Seen with dra-example-driver 31914ce (cmd/dra-example-kubeletplugin/driver.go): with partitions,
    ``gpu-0`` becomes ``gpu-0-full``.
    """

    name = "renames-devices"
    publishes = True
    suffix: str = "-full"

    def has(self, devices: Sequence[Object]) -> list[Object]:
        return [{**device, "name": f"{device['name']}{self.suffix}"} for device in devices]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintsNoSchedule(Habit):
    """It declares devices broken: no new claim gets them, and their pods run on.

    Seen with NVIDIA's dra-driver-nvidia-gpu 9593204 and its gate NVMLDeviceHealthCheck
    (cmd/gpu-kubelet-plugin/device_health.go): a GPU that has fallen off the bus.
    """

    name = "taints-no-schedule"
    publishes = True
    devices: tuple[str, ...] = ("dev-0",)
    key: str = "gpu.nvidia.com/xid"
    value: str = "79"

    def shows(self, devices: Sequence[Object], used: Collection[str]) -> list[Object]:
        return _tainted(devices, self.devices, self.key, self.value, "NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintsNoExecute(Habit):
    """It declares devices broken, and their pods are evicted.

    Read in the API's documentation of taints (k8s.io/api resource/v1, types.go, 1.36). No driver
    was seen to do it; administrators do, by a DeviceTaintRule.
    """

    name = "taints-no-execute"
    publishes = True
    devices: tuple[str, ...] = ("dev-0",)
    key: str = "example.com/broken"
    value: str = "yes"

    def shows(self, devices: Sequence[Object], used: Collection[str]) -> list[Object]:
        return _tainted(devices, self.devices, self.key, self.value, "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class HidesUsedDevices(Habit):
    """It takes a device out of its slices while the device is prepared.

    Seen with dranet v1.4.0 (pkg/driver/dra_hooks.go): a network interface is in the pod then, and
    the node has it no more.
    """

    name = "hides-used-devices"
    publishes = True

    def shows(self, devices: Sequence[Object], used: Collection[str]) -> list[Object]:
        return [device for device in devices if device["name"] not in used]


def _tainted(
    devices: Sequence[Object], broken: Collection[str], key: str, value: str, effect: str
) -> list[Object]:
    taint = {"key": key, "value": value, "effect": effect}
    return [
        {**device, "taints": [*(device.get("taints") or ()), taint]}
        if device["name"] in broken
        else device
        for device in devices
    ]
