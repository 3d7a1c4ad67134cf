"""From the locks and the commit to the image."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from claimctl import __version__
from generate import sbom
from generate.locked import LOCK, RESCHEDULE, part
from generate.wheels import WheelFailed, build_wheel
from image import debian, debian_lock, wheels
from image.layers import Layer, make_layer
from image.locked_python import LockedPython
from image.oci import Image, Json, make_image
from image.problem import ImageProblem
from image.provenance import BuiltSource
from image.rootfs import USER, make_system
from image.tree import Tree, make_file

ROOT = Path(__file__).parents[2]
LOCKS = (debian_lock.LOCK, LOCK)
DOWNLOADS = ROOT / "build/image"
OWN = (ROOT, RESCHEDULE)
"""The distributions in the image: the rescheduler runs in a pod, too."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that an image is made of."""

    debian: list[Path]
    wheels: list[Path]
    own: list[Path]
    """The wheels of the distributions of this repository that the image has."""


def read_source() -> BuiltSource:
    """The commit that is built."""
    commit = _git("rev-parse", "HEAD")
    changed = bool(_git("status", "--porcelain"))
    return BuiltSource(commit, int(_git("log", "-1", "--format=%ct")), changed)


def _git(*arguments: str) -> str:
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise ImageProblem(
            "the image is built from a git clone, and git names no commit", 2
        ) from None


def fetch_inputs(work: Path) -> Inputs:
    """Download what the locks name, and build the own wheels below ``work``."""
    packages = debian.fetch(debian_lock.read(), DOWNLOADS / "debian")
    locked = wheels.fetch(part("image"), DOWNLOADS / "wheels")
    try:
        own = [build_wheel(project, work / f"wheel-{number}") for number, project in enumerate(OWN)]
    except WheelFailed as error:
        raise ImageProblem(str(error)) from None
    return Inputs(packages, locked, own)


def make_layers(made_of: Inputs, root: Path) -> list[Layer]:
    """The layers, the lowest first; ``root`` is an empty folder for the files of the image."""
    python = LockedPython(root)
    below = make_system(made_of.debian)
    below |= python.compile(below, "usr/lib/python3.11")
    locked = wheels.make_environment(made_of.wheels)
    locked |= python.compile(locked, wheels.PACKAGES)
    own: Tree = {}
    for wheel in made_of.own:
        own |= wheels.unpack(wheel.read_bytes()) | wheels.make_scripts(wheel)
    for package in ("claimctl", "claimctl_reschedule"):
        own |= python.compile(own, f"{wheels.PACKAGES}/{package}")
    own[f"{wheels.HOME}/share/sbom/{sbom.IMAGE_FILE}"] = make_file(sbom.text("image"))
    return [
        make_layer("debian", below, python.compress),
        make_layer("wheels", locked, python.compress),
        make_layer("claimctl", own, python.compress),
    ]


def make_settings(revision: str) -> Json:
    """How the image runs, and what its labels say."""
    label = "org.opencontainers.image."
    return {
        "User": f"{USER}:{USER}",
        "Env": [
            f"PATH=/{wheels.HOME}/bin:/usr/bin",
            "PYTHONDONTWRITEBYTECODE=1",
            "PYTHONUNBUFFERED=1",
        ],
        "Entrypoint": ["claimctl"],
        "WorkingDir": "/",
        "Labels": {
            f"{label}title": "claimctl",
            f"{label}description": "Keeps DRA ResourceClaims reserved for workloads",
            f"{label}version": __version__,
            f"{label}licenses": "Apache-2.0",
            f"{label}revision": revision,
        },
    }


def build(built: BuiltSource, work: Path) -> Image:
    """Build the image in ``work``, an empty folder."""
    made = make_layers(fetch_inputs(work), work / "root")
    return make_image(made, make_settings(built.commit), built.time)
