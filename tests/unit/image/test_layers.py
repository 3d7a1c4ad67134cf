"""A layer is the same bytes for the same files, and has them as they should be."""

from __future__ import annotations

import hashlib
import io
import tarfile

from image.layers import make_layer, pack_tree
from tests.unit.image.trees import TREE, compress


def members() -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(pack_tree(TREE))) as archive:
        return {member.name: member for member in archive.getmembers()}


def test_the_order_in_which_files_were_added_does_not_matter() -> None:
    turned = dict(reversed(TREE.items()))
    assert pack_tree(turned) == pack_tree(TREE)


def test_a_directory_comes_before_what_is_in_it() -> None:
    names = list(members())
    assert names == [
        *("bin", "etc", "etc/name", "home", "home/own", "tmp", "usr", "usr/bin", "usr/bin/tool")
    ]


def test_entries_have_their_modes_owners_and_targets_and_no_time() -> None:
    found = members()
    assert (found["usr/bin/tool"].mode, found["usr/bin/tool"].uid) == (0o755, 0)
    assert (found["home/own"].mode, found["home/own"].uid, found["home/own"].gid) == (
        *(0o600, 65532, 65532),
    )
    assert found["home"].isdir()
    assert found["home"].mode == 0o755
    assert found["tmp"].mode == 0o1777
    assert (found["bin"].issym(), found["bin"].linkname) == (True, "usr/bin")
    assert {member.mtime for member in found.values()} == {0}


def test_its_diff_id_is_the_digest_of_what_is_packed() -> None:
    layer = make_layer("below", TREE, compress)
    assert layer.diff_id == f"sha256:{hashlib.sha256(pack_tree(TREE)).hexdigest()}"
    assert layer.packed == compress(pack_tree(TREE))
