"""The image as one tar: an OCI layout that is also an archive of ``docker save``.

containerd and skopeo read ``index.json``, and Docker before version 25 ``manifest.json``. Both name
the same blobs. See the OCI image specification 1.1, image-layout.md.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from image.layers import Layer, digest, make_header
from image.tree import TreeEntry, make_file

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Image:
    """The blobs of an image by their digests, and which of them is its manifest."""

    manifest: str
    config: str
    layers: tuple[str, ...]
    blobs: dict[str, bytes]


def encode(document: Any) -> bytes:
    """A document as JSON, the same bytes for the same content."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def make_image(layers: Sequence[Layer], settings: Json, created: int) -> Image:
    """The image of some layers.

    Args:
        layers: the lowest first.
        settings: ``config`` of the image: the user, the command and so on.
        created: when, in seconds since 1970.
    """
    time = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = encode(
        {
            "architecture": "amd64",
            "config": settings,
            "created": time,
            "history": [{"created": time, "created_by": layer.title} for layer in layers],
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        }
    )
    packed = [layer.packed for layer in layers]
    manifest = encode(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": describe(CONFIG, config),
            "layers": [describe(LAYER, each) for each in packed],
        }
    )
    blobs = {digest(each): each for each in (*packed, config, manifest)}
    return Image(digest(manifest), digest(config), tuple(map(digest, packed)), blobs)


def describe(media_type: str, data: bytes) -> Json:
    return {"mediaType": media_type, "digest": digest(data), "size": len(data)}


def pack_archive(made: Image, reference: str) -> bytes:
    """The tar of an image that is to be called ``reference``, as REPOSITORY:TAG."""
    tag = reference.rpartition(":")[2]
    names = {
        "io.containerd.image.name": complete_name(reference),
        "org.opencontainers.image.ref.name": tag,
    }
    platform = {"architecture": "amd64", "os": "linux"}
    listed = describe(MANIFEST, made.blobs[made.manifest])
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{**listed, "platform": platform, "annotations": names}],
    }
    docker = {
        "Config": locate_blob(made.config),
        "RepoTags": [reference],
        "Layers": [locate_blob(each) for each in made.layers],
    }
    files = {
        "oci-layout": encode({"imageLayoutVersion": "1.0.0"}),
        "index.json": encode(index),
        "manifest.json": encode([docker]),
    }
    return pack_files(files | {locate_blob(each): data for each, data in made.blobs.items()})


def locate_blob(name: str) -> str:
    return f"blobs/{name.replace(':', '/')}"


def complete_name(reference: str) -> str:
    """The name as the kubelet and containerd complete it."""
    host, slash, _ = reference.partition("/")
    if not slash:
        return f"docker.io/library/{reference}"
    has_host = "." in host or ":" in host or host == "localhost"
    return reference if has_host else f"docker.io/{reference}"


def pack_files(files: dict[str, bytes]) -> bytes:
    """An archive of files with their folders, in the order of the paths."""
    folders = {"blobs": TreeEntry(), "blobs/sha256": TreeEntry()}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for path, entry in sorted((folders | {p: make_file(d) for p, d in files.items()}).items()):
            packed.addfile(make_header(path, entry), io.BytesIO(entry.data or b""))
    return written.getvalue()
