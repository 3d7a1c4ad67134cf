"""What a machine needs to run nodes. The first thing that is missing is named in one line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kube_in_process.real.servers.programs import ALL, CannotStart, Programs, find_programs

KUBELET = "kubelet"
OLDEST = (1, 34)
"""The first minor version whose kubelets speak the version of the DRA service that is used here."""
_PLUGINS = ("bridge", "host-local", "loopback")
_PLUGIN_FOLDERS = tuple(map(Path, ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")))
_TOOLS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "nft": "nftables",
    "unshare": "util-linux",
    "mount": "mount",
}
"""Programs on the PATH, each with the package of Debian that has it."""
_CGROUPS = Path("/sys/fs/cgroup")
_V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids")


@dataclass(frozen=True, slots=True)
class Tools:
    """What was found on the machine."""

    programs: Programs
    busybox: Path
    plugins: Path
    """The folder of the CNI plugins."""
    unified_cgroups: bool
    """Whether the machine has cgroup v2 alone."""


def find_tools(assets: Path, version: str = "") -> Tools:
    """What a cluster with nodes needs.

    Args:
        assets: the folder of the programs, or one with a folder for each version.
        version: the wanted version, such as ``1.36``; '' for the only one.

    Raises:
        CannotStart: something is missing. The message names it, and what to do.
    """
    for problem in _problems():
        raise CannotStart(problem)
    if version and (assets / version).is_dir():
        assets = assets / version
    programs = find_programs(assets, (*ALL, KUBELET))
    if version and version != ".".join(map(str, programs.version)):
        raise CannotStart(f"{assets} holds {programs.text}, but {version} is wanted")
    if programs.version < OLDEST:
        raise CannotStart(
            f"{assets}: kubelets of {programs.text} are not supported; "
            f"{'.'.join(map(str, OLDEST))} or newer is needed"
        )
    busybox, plugins = shutil.which("busybox"), _plugins()
    assert busybox is not None
    assert plugins is not None
    return Tools(programs, Path(busybox), plugins, _unified())


def _problems() -> Iterator[str]:
    if sys.platform != "linux":
        yield "nodes need Linux"
    if os.geteuid() != 0:
        yield "nodes need root: they make namespaces, mounts and containers"
    for program, package in _TOOLS.items():
        if shutil.which(program) is None:
            yield f"{program} is not on the PATH; install {package}"
    if _plugins() is None:
        folders = ", ".join(map(str, _PLUGIN_FOLDERS))
        yield f"no CNI plugins in {folders}; install containernetworking-plugins"
    busybox = shutil.which("busybox")
    if busybox is None or not _is_static(Path(busybox)):
        yield "no busybox without shared libraries on the PATH; install busybox-static"
    if find_spec("grpc") is None:
        yield "the Python package grpcio is missing; `make venv` installs it"
    yield from _cgroup_problems()


def _plugins() -> Path | None:
    for folder in _PLUGIN_FOLDERS:
        if all((folder / name).exists() for name in _PLUGINS):
            return folder
    return None


def _is_static(program: Path) -> bool:
    """Whether an ELF file names no interpreter: the image has nothing but this file."""
    return b"/ld-linux" not in program.read_bytes()[:4096]


def _unified() -> bool:
    return (_CGROUPS / "cgroup.controllers").exists()


def _cgroup_problems() -> Iterator[str]:
    """Containers need cgroups that this process may write, of either version."""
    if _unified():
        probed = [_CGROUPS]
    else:
        missing = [
            controller
            for controller in _V1_CONTROLLERS
            if not (_CGROUPS / controller / "tasks").exists()
        ]
        if missing:
            yield f"no cgroup controllers {', '.join(missing)} are mounted in {_CGROUPS}"
        probed = [_CGROUPS / controller for controller in _V1_CONTROLLERS]
    for folder in probed:
        if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_RDONLY:
            yield f"the cgroups in {folder} are read-only; containers cannot be started here"
