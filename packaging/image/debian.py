"""The files of Debian packages, without running a script of theirs."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from image.debian_lock import ARCHITECTURE, DebianPackage
from image.problem import ImageProblem
from image.tree import Tree, TreeEntry, make_file

_MERGED = re.compile(r"^(bin|sbin|lib|lib64)(?=/)")
_PYTHON = "usr/lib/python3.11/"
UNWANTED = (
    *("usr/share/man/*", "usr/share/lintian/*", "usr/share/bug/*", "usr/share/binfmts/*"),
    *("usr/share/base-files/*", "usr/share/applications/*", "usr/share/pixmaps/*"),
    *("usr/lib/binfmt.d/*", "usr/sbin/*", "etc/update-motd.d/*", "etc/ca-certificates/*"),
    # the tables of character sets, of which Python has its own
    "usr/lib/x86_64-linux-gnu/gconv/*",
    "usr/lib/x86_64-linux-gnu/engines-3/*",
    "usr/lib/x86_64-linux-gnu/ossl-modules/*",
    # parts of Python for people at a terminal, and those that need further libraries
    *(f"{_PYTHON}{name}/*" for name in ("test", "lib2to3", "pydoc_data", "ensurepip", "venv")),
    *(f"{_PYTHON}{name}/*" for name in ("curses", "sqlite3")),
    *(f"{_PYTHON}{name}.py" for name in ("turtle", "crypt")),
    *(
        f"{_PYTHON}lib-dynload/{name}.*"
        for name in (
            *("_test*", "_xx*", "xx*", "_codecs_*", "_curses*", "_dbm", "_gdbm", "_crypt", "nis"),
            *("_ctypes_test", "_sqlite3", "readline", "ossaudiodev"),
        )
    ),
)
"""Patterns of paths that stay out of the image."""


def fetch(packages: list[DebianPackage], folder: Path) -> list[Path]:
    """The packages as files in a folder; those that are not there yet are downloaded.

    Raises:
        ImageProblem: for a missing tool or version, or a file with another digest.
    """
    for tool in ("apt-get", "dpkg-deb", "dpkg"):
        if shutil.which(tool) is None:
            raise ImageProblem(f"{tool} is missing: build the image on Debian 12", 2)
    machine = _output(["dpkg", "--print-architecture"]).decode().strip()
    if machine != ARCHITECTURE:
        raise ImageProblem(f"this machine is {machine}: the image is locked for {ARCHITECTURE}", 2)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [each for each in packages if not (folder / each.file).is_file()]
    if missing:
        names = [f"{each.name}={each.version}" for each in missing]
        # the sandbox's user may not write into the folder of whoever builds
        _output(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names], folder)
    for each in packages:
        data = (folder / each.file).read_bytes() if (folder / each.file).is_file() else b""
        if hashlib.sha256(data).hexdigest() != each.sha256:
            (folder / each.file).unlink(missing_ok=True)
            raise ImageProblem(f"{each.file} is not the file that the lock names: {each}")
    return [folder / each.file for each in packages]


def unpack(package: Path) -> Tree:
    """The wanted files of a package, and its entry for scanners."""
    with tarfile.open(
        fileobj=io.BytesIO(_output(["dpkg-deb", "--fsys-tarfile", str(package)]))
    ) as archive:
        tree = {
            locate(member.name): _entry(archive, member)
            for member in archive.getmembers()
            if not member.isdir() and is_wanted(locate(member.name))
        }
    control = _output(["dpkg-deb", "--field", str(package)]).decode()
    name = package.name.partition("_")[0]
    status = control.replace("\nVersion:", "\nStatus: install ok installed\nVersion:", 1)
    return tree | {f"var/lib/dpkg/status.d/{name}": make_file(status)}


def locate(name: str) -> str:
    """Where a file of a package is in the image, in which /lib is a link to /usr/lib."""
    return _MERGED.sub(r"usr/\1", str(PurePosixPath(name)), count=1)


def is_wanted(path: str) -> bool:
    """Of documents only licences: a file, or a link to the folder of another package."""
    if fnmatch(path, "usr/share/doc/*/*"):
        return path.endswith("/copyright")
    return not any(fnmatch(path, pattern) for pattern in UNWANTED)


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> TreeEntry:
    if member.issym():
        return TreeEntry(member.mode, target=member.linkname, owner=member.uid)
    if not member.isreg():
        raise ImageProblem(f"{member.name} is neither a file nor a symbolic link")
    content = archive.extractfile(member)
    return TreeEntry(member.mode, content.read() if content else b"", owner=member.uid)


def _output(command: list[str], folder: Path | None = None) -> bytes:
    ended = subprocess.run(command, capture_output=True, cwd=folder, check=False)
    if ended.returncode:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        hint = "; run apt-get update, or make image-lock if the archive has newer versions"
        raise ImageProblem(f"{command[0]}: {lines[0]}{hint if command[0] == 'apt-get' else ''}")
    return ended.stdout
