"""Wheels by the hashes of the lock, and their files in the image."""

from __future__ import annotations

import configparser
import hashlib
import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.markers import Marker

from image.problem import ImageProblem
from image.tree import EXECUTABLE, Tree, make_file, make_link

HOME = "opt/claimctl"
"""A virtual environment."""
PACKAGES = f"{HOME}/lib/python3.11/site-packages"
PYTHON = f"{HOME}/bin/python"
_GLIBC = 36
"""The minor version of Debian 12's C library."""
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(_GLIBC, 16, -1)),
    *("manylinux2014_x86_64", "manylinux_2_12_x86_64", "manylinux2010_x86_64"),
    *("manylinux_2_5_x86_64", "manylinux1_x86_64", "linux_x86_64"),
)
TARGET = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
}
"""What conditions in the lock are asked about: the image, not the machine that builds it."""
_PIN = re.compile(
    r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; ([^\\\n]+?))? \\\n((?: +--hash=\S+(?: \\)?\n)+)"
)


@dataclass(frozen=True, slots=True)
class Pin:
    """One locked package with the digests of all its files."""

    name: str
    version: str
    sha256: frozenset[str]


def read_pins(lock: str) -> list[Pin]:
    """What a lock file pins for the image."""
    return [
        Pin(name, version, frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", hashes)))
        for name, version, condition, hashes in _PIN.findall(lock)
        if not condition or Marker(condition).evaluate(TARGET)
    ]


def fetch(lock: str, folder: Path) -> list[Path]:
    """The locked wheels as files in a folder, downloaded if they are not there yet.

    Raises:
        ImageProblem: if one is not to be had, or only as source.
    """
    wanted = read_pins(lock)
    folder.mkdir(parents=True, exist_ok=True)
    if len(_chosen(wanted, folder)) < len(wanted):
        _download(wanted, folder)
    chosen = _chosen(wanted, folder)
    missing = sorted({pin.name for pin in wanted} - chosen.keys())
    if missing:
        raise ImageProblem(f"no wheel in {folder} is the one that the lock names: {missing[0]}")
    return [chosen[name] for name in sorted(chosen)]


def _chosen(wanted: Iterable[Pin], folder: Path) -> dict[str, Path]:
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.whl")}
    return {pin.name: path for pin in wanted for path in digests if digests[path] in pin.sha256}


def _download(wanted: list[Pin], folder: Path) -> None:
    list_of_pins = folder / "requirements.txt"
    list_of_pins.write_text(
        "".join(
            f"{pin.name}=={pin.version} "
            + " ".join(f"--hash=sha256:{each}" for each in sorted(pin.sha256))
            + "\n"
            for pin in wanted
        )
    )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--implementation=cp", "--python-version=3.11"]
    command += [f"--abi={each}" for each in ("cp311", "abi3", "none")]
    command += [f"--platform={each}" for each in PLATFORMS]
    ended = subprocess.run(
        [*command, "-r", str(list_of_pins)], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.startswith("ERROR:")]
        raise ImageProblem(f"pip download: {lines[0] if lines else 'no message'}")


def make_environment(wheels: Iterable[Path]) -> Tree:
    """A virtual environment with the files of the wheels."""
    tree: Tree = {
        PYTHON: make_link("/usr/bin/python3.11"),
        f"{HOME}/pyvenv.cfg": make_file("home = /usr/bin\ninclude-system-site-packages = false\n"),
    }
    for wheel in wheels:
        tree |= unpack(wheel.read_bytes())
    return tree


def unpack(wheel: bytes) -> Tree:
    """The modules and the metadata of a wheel. Its scripts and its manual pages stay out."""
    tree: Tree = {}
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for name in archive.namelist():
            folder, *inside = PurePosixPath(name).parts
            if folder.endswith(".data"):
                if inside[0] not in ("purelib", "platlib"):
                    continue
                folder, *inside = inside[1:]
            if not name.endswith("/"):
                path = str(PurePosixPath(PACKAGES, folder, *inside))
                tree[path] = make_file(archive.read(name))
    return tree


def make_scripts(wheel: Path) -> Tree:
    """The commands that a wheel declares, for the Python of the image."""
    # the folder is named as the file is: with underscores, where the distribution has dashes
    distribution, version, *_ = wheel.name.split("-")
    declared = configparser.ConfigParser(delimiters=("=",))
    with zipfile.ZipFile(wheel) as archive:
        folder = f"{distribution}-{version}.dist-info"
        declared.read_string(archive.read(f"{folder}/entry_points.txt").decode())
    tree: Tree = {}
    scripts = declared["console_scripts"] if declared.has_section("console_scripts") else {}
    for name, reference in scripts.items():
        module, _, function = reference.partition(":")
        lines = (f"#!/{PYTHON}", "import sys", f"from {module} import {function}")
        text = "\n".join((*lines, f"sys.exit({function}())", ""))
        tree[f"{HOME}/bin/{name}"] = make_file(text, EXECUTABLE)
    return tree
