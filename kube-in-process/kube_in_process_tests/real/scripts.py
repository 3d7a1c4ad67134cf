"""Programs for tests: shell scripts that answer ``--version`` and then do what the test wants."""

from __future__ import annotations

from pathlib import Path

from kube_in_process.real.servers.programs import ALL, ETCD

WAITS = "exec sleep 600"


def write(
    folder: Path, name: str, then: str = WAITS, *, version: str = "Kubernetes v1.36.2"
) -> None:
    """One program."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit 0; fi\n{then}\n'
    )
    path.chmod(0o755)


def folder_of(path: Path, *, version: str = "Kubernetes v1.36.2") -> Path:
    """A folder with all four programs; they start and wait."""
    for name in ALL:
        write(path, name, version="etcd Version: 3.6.1" if name == ETCD else version)
    return path
