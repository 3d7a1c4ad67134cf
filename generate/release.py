"""Everything that a release is made of, as files: ``python -m generate.release --help``."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from generate import krew
from generate.archives import READABLE, pack
from generate.wheels import WheelFailed, build_wheel
from image.__main__ import FILES, NAME, write_image
from image.problem import ImageProblem
from image.signature import read_key, sign

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "claimctl"
SUMS = "SHA256SUMS"


def pack_chart() -> bytes:
    """The chart as `helm package` packs it."""
    paths = [CHART / "Chart.yaml", CHART / "values.yaml", CHART / "values.schema.json"]
    paths += sorted(path for path in (CHART / "templates").rglob("*") if path.is_file())
    return pack(
        {f"claimctl/{path.relative_to(CHART)}": (path.read_bytes(), READABLE) for path in paths}
    )


def list_sums(folder: Path) -> str:
    """The digests of the files in a folder, as `sha256sum --check` reads them."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(SUMS))
    digests = (hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names)
    return "".join(f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True))


def write_wheels(folder: Path) -> None:
    """Build all wheels into a folder."""
    for project in (ROOT, ROOT / "claimctl-reschedule", ROOT / "kube-in-process"):
        with tempfile.TemporaryDirectory() as built:
            shutil.copy(build_wheel(project, Path(built)), folder)


def write_release(dist: Path, name: str, key: Path | None, url: str) -> None:
    """Write all files of a release into an empty folder, and their digests."""
    print(write_image(name, key, dist))
    write_wheels(dist)
    (dist / f"{FILES}.tgz").write_bytes(pack_chart())
    krew.write(dist, url)
    sums = list_sums(dist).encode()
    (dist / SUMS).write_bytes(sums)
    if key:
        (dist / f"{SUMS}.sig").write_text(f"{sign(read_key(key), sums)}\n")


def replace_files(made: Path, dist: Path) -> None:
    """Bring the files into ``dist`` in place of those of an earlier build."""
    dist.mkdir(parents=True, exist_ok=True)
    for pattern in (f"{FILES}*", f"{SUMS}*"):
        for stale in dist.glob(pattern):
            stale.unlink()
    for path in sorted(made.iterdir()):
        shutil.copy(path, dist)
        print(dist / path.name)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m generate.release", description=__doc__)
    parser.add_argument("--key", type=Path, help="a private key in PEM to sign with")
    parser.add_argument("--name", default=NAME, help="of the image: REPOSITORY:TAG")
    parser.add_argument("--url", default="", help="where the archive for krew will be")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to write to")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="claimctl-release-") as made:
            write_release(Path(made), options.name, options.key, options.url)
            replace_files(Path(made), options.dist)
    except (ImageProblem, WheelFailed) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return getattr(problem, "code", 1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
