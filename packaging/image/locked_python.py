"""The image's own Python, run outside of a container.

It makes the bytecode and packs the layers, so that these bytes depend on the locks and not on the
Python and the zlib of whoever builds.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from image.problem import ImageProblem
from image.tree import Tree, read_files, write

_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_COMPILE = """
import compileall, py_compile, sys
root, *folders = sys.argv[1:]
for folder in folders:
    compileall.compile_dir(
        f"{root}/{folder}", maxlevels=30, stripdir=root, prependdir="/", quiet=2, force=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
"""
_COMPRESS = """
import gzip, sys
sys.stdout.buffer.write(gzip.compress(sys.stdin.buffer.read(), compresslevel=6, mtime=0))
"""


@dataclass(frozen=True, slots=True)
class LockedPython:
    """The Python below ``root``, a directory with the files of the image."""

    root: Path

    def compile(self, tree: Tree, *folders: str) -> Tree:
        """The bytecode of the modules in folders of a tree, which is written below ``root``."""
        write(tree, self.root)
        self._run(_COMPILE, str(self.root), *folders)
        return {
            f"{folder}/{path}": entry
            for folder in folders
            for path, entry in read_files(self.root / folder, "*.pyc").items()
        }

    def compress(self, data: bytes) -> bytes:
        """The data packed by gzip."""
        return self._run(_COMPRESS, data=data)

    def _run(self, code: str, *arguments: str, data: bytes = b"") -> bytes:
        libraries = self.root / _LIBRARIES
        loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
        ended = subprocess.run(
            [*loader, str(self.root / "usr/bin/python3.11"), "-c", code, *arguments],
            input=data,
            capture_output=True,
            # the order of sets in bytecode depends on the seed
            env={
                "PYTHONHOME": str(self.root / "usr"),
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            check=False,
        )
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise ImageProblem(f"the Python of the image: {lines[-1]}")
        return ended.stdout
