"""The flags of programs that play on real servers, and where these servers are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from kube_in_process.real.servers.programs import (
    API_SERVER,
    ASSETS,
    ETCD,
    CannotStart,
    Programs,
    find_programs,
    folder_of,
    present,
)

POD_GROUPS_SINCE = (1, 36)
_BAD, _SKIPPED = 2, 2
"""Exit codes for a bad flag, and for a program that has no real servers to run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The real servers of a program; the flags of a program on real servers extend this class."""

    programs: Programs
    pod_groups: bool = False
    keep: str = ""
    """A folder for all logs; "" for a temporary one that is deleted after the run."""

    @property
    def label(self) -> str:
        gates = " with PodGroups" if self.pod_groups else ""
        return f"Kubernetes {self.programs.text}{gates}"


_Shape = TypeVar("_Shape", bound=Servers)


class Parser(argparse.ArgumentParser):
    """The flags of one program. A bad flag is reported in one line."""

    def __init__(self, program: str, about: str | None) -> None:
        """``program`` is what stands behind ``python -m``, such as ``judges fuzz``."""
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(f"python -m {program}", None, about, formatter_class=formatter)
        self.called = program.split()[-1]

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD, f"{self.called}: {message.removeprefix('argument ')}\n")

    def add_servers(self, *, gates: bool = True) -> None:
        """Add the flags of :class:`Servers`; ``--gates`` switches PodGroups on."""
        self.add_version()
        if gates:
            self.add_switch("--gates", "1 for PodGroups (1.36)", "pod_groups")
        self.add_argument("--keep", default="", metavar="DIR", help="keep the servers' logs there")

    def add_switch(self, flag: str, about: str, dest: str | None = None) -> None:
        """Add a flag that is 0 or 1."""
        self.add_argument(flag, dest=dest, help=about, type=_switch, default=False, metavar="{0,1}")

    def add_version(self) -> None:
        self.add_argument("--version", default="", help="of the real servers, such as 1.36")

    def read(self, arguments: Sequence[str], shape: Callable[..., _Shape]) -> _Shape:
        """The flags of a program on real servers, with the servers of their version."""
        values = vars(self.parse_args(arguments))
        options = shape(programs=self.programs(values.pop("version")), **values)
        if options.pod_groups and options.programs.version < POD_GROUPS_SINCE:
            text = options.programs.text
            self.error(f"--gates: {text} has no PodGroups for claims; use --version 1.36")
        return options

    def programs(self, version: str) -> Programs:
        """The programs of real servers. Without any this exits: it is skipped."""
        if not os.environ.get(ASSETS) and folder_of(version) is None:
            text = f"set {ASSETS} to a folder with etcd and the Kubernetes programs of one version"
            self.exit(_SKIPPED, f"{self.called}: skipped: {text}, or with a folder per version\n")
        try:
            return programs_of(version)
        except CannotStart as error:
            self.error(f"--version: {error}")


def number(
    least: float = 0.0, most: float = float("inf"), *, kind: type[int] | type[float] = int
) -> Callable[[str], Any]:
    """A type of flags: a number within limits."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
        if not least <= value <= most:
            limits = f"between {least:g} and {most:g}" if most < float("inf") else f">= {least:g}"
            raise argparse.ArgumentTypeError(f"{text} is not {limits}")
        return value

    return read


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor 1")
    return text == "1"


def programs_of(version: str) -> Programs:
    """The programs that ``KUBEBUILDER_ASSETS`` names.

    The folder holds the programs themselves, and ``version`` (such as ``1.36``), if given, must be
    theirs; or it holds a folder named after each version, of which ``version`` picks one.

    Raises:
        CannotStart: the programs are missing, of another version, or do not run here.
    """
    folder = (folder_of(version) if version else None) or Path(os.environ.get(ASSETS, ""))
    programs = find_programs(folder, _names(folder))
    text = ".".join(map(str, programs.version))
    if version and text != version:
        raise CannotStart(f"{folder} holds {programs.text}, but {version} is wanted")
    return programs


def _names(folder: Path) -> tuple[str, ...]:
    """All four programs if the folder has them, otherwise etcd and kube-apiserver."""
    needed = (ETCD, API_SERVER)
    return (*needed, *(name for name in present(folder) if name not in needed))
