"""A small image."""

from __future__ import annotations

import gzip

from image.layers import make_layer
from image.oci import Image, make_image
from image.tree import Tree, TreeEntry, make_file, make_link

TREE: Tree = {
    "usr/bin/tool": make_file("#!/nothing\n", 0o755),
    "etc/name": make_file("claimctl\n"),
    "bin": make_link("usr/bin"),
    "home/own": TreeEntry(0o600, b"mine", owner=65532),
    "tmp": TreeEntry(0o1777),
}


def compress(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def small_image(tree: Tree = TREE) -> Image:
    layers = [
        make_layer("below", tree, compress),
        make_layer("above", {"a": make_file("a")}, compress),
    ]
    return make_image(layers, {"User": "65532:65532"}, 1_700_000_000)
