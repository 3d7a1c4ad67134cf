"""The archive of an image, as a container runtime reads it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from image.layers import digest
from image.oci import Json, locate_blob
from image.problem import ImageProblem


class Reader:
    """Its index, the manifest and the configuration that the index leads to, and its files."""

    def __init__(self, data: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            self.files = {
                member.name: content.read()
                for member in packed.getmembers()
                if (content := packed.extractfile(member)) is not None
            }
        self.index: Json = json.loads(self.files["index.json"])
        self.manifest: Json = json.loads(self.blob(self.index["manifests"][0]))
        self.config: Json = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor: Json) -> bytes:
        """A blob; raises ImageProblem if it is not what its descriptor says."""
        data = self.files[locate_blob(descriptor["digest"])]
        if (digest(data), len(data)) != (descriptor["digest"], descriptor["size"]):
            raise ImageProblem(f"{descriptor['digest']} has another content", 3)
        return data

    def unpack(self, root: Path) -> None:
        """Write the files of all layers into a folder. The owners need root."""
        for layer in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(layer)), mode="r:gz") as packed:
                packed.extractall(root, filter="fully_trusted", numeric_owner=True)
