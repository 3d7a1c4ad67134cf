"""Finds the programs of a real control plane, in one folder or in a folder per version."""

from __future__ import annotations

import os
from pathlib import Path

from claimctl_demo.real_servers.programs import (
    API_SERVER,
    ETCD,
    CannotStart,
    Programs,
    find_programs,
    present,
)

VARIABLE = "KUBEBUILDER_ASSETS"


def programs_of(version: str) -> Programs:
    """The programs that ``KUBEBUILDER_ASSETS`` names.

    The folder holds the programs themselves, and ``version`` (such as ``1.36``), if given, must be
    theirs; or it holds a folder named after each version, of which ``version`` picks one.

    Raises:
        CannotStart: the programs are missing, of another version, or do not run here.
    """
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise CannotStart(f"set {VARIABLE} to the folder that holds etcd and kube-apiserver")
    folder = Path(named)
    if version and (folder / version).is_dir():
        folder = folder / version
    found = find_programs(folder, wanted_of(folder))
    text = ".".join(map(str, found.version))
    if version and text != version:
        raise CannotStart(f"{folder} holds {found.text}, but VERSION={version} is wanted")
    return found


def wanted_of(folder: Path) -> tuple[str, ...]:
    """All four programs if the folder has them, otherwise etcd and kube-apiserver."""
    needed = (ETCD, API_SERVER)
    return (*needed, *(name for name in present(folder) if name not in needed))
