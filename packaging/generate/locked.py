"""Parts of the one lock: ``python -m generate.locked PART...`` prints their pins.

``locks/requirements.lock`` pins everything that runs here, the measurements included. Each other
set of packages is a part of it: the packages that something asks for, and what those need.
``needs`` prints what all distributions ask for, and ``make lock`` pins it.

This module needs nothing but Python: it says what a new virtual environment gets.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESCHEDULE = ROOT / "claimctl-reschedule"
"""The distribution that is in the image beside claimctl."""
LOCK = ROOT / "locks" / "requirements.lock"
_ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_VIA = re.compile(r"^ +#(?: via)? +([A-Za-z0-9._-]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One entry of a lock: its text, the name of the package, and which packages need it."""

    text: str
    name: str
    needed_by: frozenset[str]


def entries(lock: str) -> list[LockEntry]:
    """The entries of a lock."""
    texts = [text for text in _ENTRY.split(lock) if text[:1] not in ("", "#")]
    return [LockEntry(text, name_of(text), frozenset(_VIA.findall(text))) for text in texts]


def name_of(requirement: str) -> str:
    """The name of the package at the beginning of a requirement, in lower case."""
    found = _NAME.match(requirement)
    if found is None:
        raise ValueError(f"not a requirement: {requirement}")
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def closed(names: Iterable[str], lock: str) -> str:
    """The entries of these packages and of all packages that they need, in the lock's order.

    The lock says which package needs another, but not for which extra.
    """
    chosen, found = set(names), entries(lock)
    while more := {each.name for each in found if each.needed_by & chosen} - chosen:
        chosen |= more
    return "".join(each.text for each in found if each.name in chosen)


def dependencies(project: Path = ROOT, extras: Sequence[str] = ()) -> list[str]:
    """What a distribution asks for, with these extras. Other distributions of here are left out."""
    told = _read(project)["project"]
    asked = list(told.get("dependencies", []))
    for extra in extras:
        asked += told.get("optional-dependencies", {}).get(extra, [])
    own = {_read(each)["project"]["name"] for each in projects()}
    return [each for each in asked if name_of(each) not in own]


def projects() -> list[Path]:
    """The folders of all distributions of the repository."""
    return [ROOT, *sorted(path.parent for path in ROOT.glob("*/pyproject.toml"))]


def build_requirements() -> list[str]:
    """What builds the wheels."""
    asked: list[str] = _read(ROOT)["build-system"]["requires"]
    return asked


def left_out() -> frozenset[str]:
    """The names of the packages that ``pyproject.toml`` leaves out of the image."""
    return frozenset(_read(ROOT)["tool"]["claimctl"]["image"]["without"])


def image_requirements() -> list[str]:
    """The dependencies that the image has."""
    asked = [*dependencies(), *dependencies(RESCHEDULE)]
    return [each for each in dict.fromkeys(asked) if name_of(each) not in left_out()]


def needs(*extras: str) -> list[str]:
    """What all distributions ask for, each once."""
    asked = (each for project in projects() for each in dependencies(project, extras))
    return sorted({*asked, *build_requirements()})


PARTS: dict[str, Callable[[], list[str]]] = {
    "claimctl": dependencies,
    "image": image_requirements,
    "build": build_requirements,
    "demo": needs,
    "dev": lambda: needs("dev"),
}
"""The parts, each with what its packages are asked for."""


def part(*names: str) -> str:
    """The entries of these parts."""
    asked = (each for name in names for each in PARTS[name]())
    return closed(map(name_of, asked), LOCK.read_text(encoding="utf-8"))


def _read(project: Path) -> dict[str, Any]:
    return tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))


def _printed(arguments: Sequence[str]) -> Iterator[str]:
    if arguments == ["needs"]:
        yield from needs("dev", "bench")
    elif arguments and PARTS.keys() >= set(arguments):
        yield part(*arguments)
    else:
        raise SystemExit(f"usage: python -m generate.locked needs | {' | '.join(PARTS)}")


if __name__ == "__main__":
    print(*_printed(sys.argv[1:]), sep="\n")
