"""The archive of an image: what container runtimes read in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from image.layers import digest, make_layer
from image.oci import complete_name, locate_blob, make_image, pack_archive
from image.problem import ImageProblem
from image.reader import Reader
from image.tree import make_file
from tests.unit.image.trees import TREE, compress, small_image

NAME = "registry.example.com/claimctl:1.2"


def test_the_same_files_give_the_same_archive() -> None:
    assert pack_archive(small_image(), NAME) == pack_archive(small_image(), NAME)
    changed = TREE | {"etc/name": make_file("other\n")}
    assert small_image(changed).manifest != small_image().manifest


def test_the_name_is_not_part_of_the_digest() -> None:
    image = small_image()
    here, there = (Reader(pack_archive(image, name)) for name in (NAME, "other:1"))
    assert here.index["manifests"][0]["digest"] == there.index["manifests"][0]["digest"]


def test_the_index_leads_to_every_blob() -> None:
    image = small_image()
    reader = Reader(pack_archive(image, NAME))
    [listed] = reader.index["manifests"]
    assert listed["digest"] == image.manifest
    assert listed["platform"] == {"architecture": "amd64", "os": "linux"}
    assert listed["annotations"] == {
        "io.containerd.image.name": NAME,
        "org.opencontainers.image.ref.name": "1.2",
    }
    packed = [reader.blob(each) for each in reader.manifest["layers"]]
    diff_ids = [digest(gzip.decompress(each)) for each in packed]
    assert reader.config["rootfs"] == {"type": "layers", "diff_ids": diff_ids}
    assert reader.config["created"] == "2023-11-14T22:13:20Z"
    assert [each["created_by"] for each in reader.config["history"]] == ["below", "above"]
    assert json.loads(reader.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_docker_finds_the_same_blobs() -> None:
    reader = Reader(pack_archive(small_image(), NAME))
    [listed] = json.loads(reader.files["manifest.json"])
    assert listed == {
        "Config": locate_blob(reader.manifest["config"]["digest"]),
        "Layers": [locate_blob(each["digest"]) for each in reader.manifest["layers"]],
        "RepoTags": [NAME],
    }


def test_a_changed_blob_is_noticed(tmp_path: Path) -> None:
    image = small_image()
    image.blobs[image.layers[0]] = gzip.compress(b"", mtime=0)
    with pytest.raises(ImageProblem, match="has another content"):
        Reader(pack_archive(image, NAME)).unpack(tmp_path)


def test_layers_that_are_the_same_are_stored_once() -> None:
    image = make_image([make_layer("same", TREE, compress)] * 2, {}, 0)
    assert len(image.layers) == 2
    assert len(image.blobs) == 3


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("claimctl:1", "docker.io/library/claimctl:1"),
        ("team/claimctl:1", "docker.io/team/claimctl:1"),
        ("localhost/claimctl:1", "localhost/claimctl:1"),
        ("registry:5000/claimctl:1", "registry:5000/claimctl:1"),
        (NAME, NAME),
    ],
)
def test_a_short_name_is_completed_as_the_kubelet_does(short: str, full: str) -> None:
    assert complete_name(short) == full
