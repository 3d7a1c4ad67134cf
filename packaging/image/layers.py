"""Layers: a tree of files as a tar archive that has no times, in the order of the paths."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass

from image.tree import Tree, TreeEntry, add_directories

Compress = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Layer:
    """``packed`` is the compressed archive; ``diff_id`` the digest of the archive before that."""

    title: str
    packed: bytes
    diff_id: str


def digest(data: bytes) -> str:
    """The digest of a blob as OCI writes it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def make_layer(title: str, tree: Tree, compress: Compress) -> Layer:
    """The layer of a tree.

    Args:
        title: what the history of the image calls it.
        compress: packs bytes with gzip, the same bytes for the same input.
    """
    archive = pack_tree(tree)
    return Layer(title, compress(archive), digest(archive))


def pack_tree(tree: Tree) -> bytes:
    """The tar archive of a tree with all its directories."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in add_directories(tree).items():
            archive.addfile(make_header(path, entry), io.BytesIO(entry.data or b""))
    return written.getvalue()


def make_header(path: str, entry: TreeEntry) -> tarfile.TarInfo:
    """The head of an entry in an archive. The time is 1970, so that layers outlive commits."""
    made = tarfile.TarInfo(path)
    made.mode, made.uid, made.gid = entry.mode, entry.owner, entry.owner
    if entry.target:
        made.type, made.linkname = tarfile.SYMTYPE, entry.target
    elif entry.data is None:
        made.type = tarfile.DIRTYPE
    else:
        made.size = len(entry.data)
    return made
