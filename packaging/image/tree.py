"""A tree of files in memory, with the owner and the mode that each has in the image."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

EXECUTABLE, READABLE = 0o755, 0o644


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file with its ``data``, a symbolic link with its ``target``, or else a directory."""

    mode: int = EXECUTABLE
    data: bytes | None = None
    target: str = ""
    owner: int = 0
    """The number of the user and of the group."""


Tree = dict[str, TreeEntry]
"""Entries by their paths, which are relative to the root."""


def make_file(data: bytes | str, mode: int = READABLE) -> TreeEntry:
    return TreeEntry(mode, data.encode() if isinstance(data, str) else data)


def make_link(target: str) -> TreeEntry:
    return TreeEntry(0o777, target=target)


def add_directories(tree: Tree) -> Tree:
    """The tree with a directory above each entry, in the order of the paths."""
    missing = {
        str(parent)
        for path in tree
        for parent in PurePosixPath(path).parents
        if str(parent) != "." and str(parent) not in tree
    }
    whole = tree | dict.fromkeys(missing, TreeEntry())
    return {path: whole[path] for path in sorted(whole, key=PurePosixPath)}


def write(tree: Tree, root: Path) -> None:
    """Write the tree into a directory. The owner of all files is whoever runs this."""
    root.mkdir(parents=True, exist_ok=True)
    for path, entry in add_directories(tree).items():
        place = root / path
        if entry.target:
            place.symlink_to(entry.target)
        elif entry.data is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.write_bytes(entry.data)
            place.chmod(stat.S_IMODE(entry.mode))


def read_files(root: Path, pattern: str) -> Tree:
    """The files below a directory whose paths match a pattern, readable by all."""
    return {
        path.relative_to(root).as_posix(): make_file(path.read_bytes())
        for path in sorted(root.rglob(pattern))
        if path.is_file() and not path.is_symlink()
    }
