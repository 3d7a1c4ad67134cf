"""Find the programs of a control plane, and their version.

``python -m kube_in_process.real.servers.programs VERSION`` prints the folder with a whole control
plane of a version. If there is none, it prints nothing and exits with 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ASSETS = "KUBEBUILDER_ASSETS"
"""The variable with the folder of the programs, or of a folder for each version."""
ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
ALL = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
OLDEST = (1, 32)
"""The first minor version in which DRA with structured parameters is beta."""

_VERSION_SECONDS = 30.0
_KUBERNETES = re.compile(r"Kubernetes v(\d+)\.(\d+)(\S*)")


class CannotStart(Exception):
    """A control plane cannot be started. The message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with programs that run on this machine and have the same version."""

    directory: Path
    version: tuple[int, int]
    """Major and minor version of the Kubernetes programs."""
    text: str
    """The whole version, such as ``v1.36.2``."""
    names: tuple[str, ...] = ALL
    """The programs in the folder."""

    def path(self, name: str) -> str:
        return str(self.directory / name)


def folder_of(version: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder with the programs of a minor version, such as 1.36; None if there is none.

    That is a folder of this name in ``KUBEBUILDER_ASSETS``, or ``KUBEBUILDER_ASSETS`` itself if its
    programs have the version. Without that variable it is the newest of the version in the store of
    setup-envtest: a folder a version below the user's data directory.
    """
    if given := environment.get(ASSETS, ""):
        if (Path(given) / version).is_dir():
            return Path(given) / version
        try:
            programs = find_programs(Path(given), (API_SERVER,))
        except CannotStart:
            return None
        return Path(given) if ".".join(map(str, programs.version)) == version else None
    stored = sorted(_store(environment).glob(f"{version}.*-*-*"), key=_patch)
    return stored[-1] if stored else None


def _patch(folder: Path) -> int:
    number = folder.name.partition("-")[0].rpartition(".")[2]
    return int(number) if number.isdecimal() else -1


def _store(environment: Mapping[str, str]) -> Path:
    """Where setup-envtest keeps the programs."""
    home = Path(environment.get("HOME", "/"))
    if sys.platform == "darwin":
        return home / "Library/Application Support/io.kubebuilder.envtest/k8s"
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    return data / "kubebuilder-envtest/k8s"


def find_programs(directory: Path, wanted: Sequence[str] = ALL) -> Programs:
    """Check a folder, and run each wanted program once to read its version.

    Raises:
        CannotStart: a program is missing, not executable, built for another architecture, or of
            a wrong version.
    """
    if not directory.is_dir():
        raise CannotStart(f"{directory}: no such folder; it should hold {', '.join(wanted)}")
    for name in wanted:
        _check_file(directory / name)
    answers = {name: _asked(directory / name) for name in wanted}
    versions = {
        name: _parsed(directory / name, answer) for name, answer in answers.items() if name != ETCD
    }
    first = next(iter(versions))
    for name, (version, text) in versions.items():
        if version != versions[first][0]:
            raise CannotStart(
                f"{directory / name} is {text}, but {first} is {versions[first][1]}: "
                "the programs of a folder must be of one version"
            )
    version, text = versions[first]
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise CannotStart(f"{directory / first} is {text}; {oldest} or newer is needed")
    return Programs(directory, version, text, tuple(wanted))


def present(directory: Path) -> tuple[str, ...]:
    """The names of the programs that a folder has."""
    return tuple(name for name in ALL if (directory / name).exists())


def _check_file(path: Path) -> None:
    if not path.exists():
        raise CannotStart(f"{path} is missing; put the program there, or name another folder")
    if path.is_dir() or not os.access(path, os.X_OK):
        raise CannotStart(f"{path} is not executable; try: chmod +x {path}")


def _asked(path: Path) -> subprocess.CompletedProcess[str]:
    """Run ``--version``. An etcd that refuses the flag still shows that it runs here."""
    try:
        return subprocess.run(
            [str(path), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise CannotStart(
            f"{path} does not run on this machine ({reason}); is it for another architecture?"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CannotStart(
            f"{path} --version gives no answer within {_VERSION_SECONDS:g} s"
        ) from error


def _parsed(path: Path, answer: subprocess.CompletedProcess[str]) -> tuple[tuple[int, int], str]:
    match = _KUBERNETES.search(answer.stdout)
    if match is None:
        lines = (answer.stdout + answer.stderr).strip().splitlines() or ["nothing"]
        raise CannotStart(f"{path} --version says {lines[-1]!r}, not 'Kubernetes v1...'")
    major, minor, rest = match.groups()
    return (int(major), int(minor)), f"v{major}.{minor}{rest}"


def main(arguments: Sequence[str]) -> int:
    """Print the folder with a whole control plane of a version.

    The store of setup-envtest has only etcd and kube-apiserver, unless somebody adds the others.
    """
    folder = folder_of(arguments[0]) if arguments else None
    if folder is None or present(folder) != ALL:
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
