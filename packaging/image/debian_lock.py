"""The lock of the Debian packages, ``debian-image.lock``: ``python -m image.debian_lock``.

The names are in ``pyproject.toml``. The lock adds to each name the version, the architecture and
the digest, as the package index of this machine has them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from image.problem import ImageProblem

ROOT = Path(__file__).parents[2]
LOCK = Path(__file__).with_name("debian-image.lock")
ARCHITECTURE = "amd64"
HEAD = "# The Debian 12 packages of the image. `make image-lock` renews them.\n"
_LINE = re.compile(r"([a-z0-9][a-z0-9.+-]+)=(\S+) (amd64|all) sha256:([0-9a-f]{64})")
_FIELD = re.compile(r"^(Version|Architecture|SHA256): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """One locked package."""

    name: str
    version: str
    architecture: str
    sha256: str

    @property
    def file(self) -> str:
        """The name under which apt-get stores it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"

    def __str__(self) -> str:
        return f"{self.name}={self.version} {self.architecture} sha256:{self.sha256}"


def read_names() -> list[str]:
    """The names of the packages that the image is made of."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names: list[str] = document["tool"]["claimctl"]["image"]["debian"]
    return names


def read(lock: Path = LOCK) -> list[DebianPackage]:
    """The locked packages; raises ImageProblem for a file that is missing or no lock."""
    if not lock.is_file():
        raise ImageProblem(f"{lock.name} is missing: make image-lock writes it", 2)
    locked = []
    for number, line in enumerate(lock.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            parts = _LINE.fullmatch(line)
            if parts is None:
                expected = "NAME=VERSION ARCHITECTURE sha256:DIGEST"
                raise ImageProblem(f"{lock.name}, line {number}: expected {expected}", 2)
            locked.append(DebianPackage(*parts.groups()))
    return locked


def parse_index(name: str, text: str) -> DebianPackage:
    """The package that an entry of the package index describes."""
    fields = dict(_FIELD.findall(text))
    return DebianPackage(name, fields["Version"], fields["Architecture"], fields["SHA256"])


def find_newest(name: str) -> DebianPackage:
    """The package as this machine would install it now."""
    command = ["apt-cache", "show", "--no-all-versions", name]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise ImageProblem("apt-cache is missing: renew the lock on Debian 12", 2) from None
    except subprocess.CalledProcessError:
        message = f"apt-cache does not know {name}: run apt-get update, on Debian 12"
        raise ImageProblem(message) from None
    return parse_index(name, answer.stdout)


def main() -> int:
    try:
        LOCK.write_text(HEAD + "".join(f"{find_newest(name)}\n" for name in sorted(read_names())))
    except ImageProblem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
