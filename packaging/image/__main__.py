"""Build the image: ``python -m image [--key FILE] [--name REPOSITORY:TAG] [--dist FOLDER]``."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from claimctl import __version__
from generate.locked import part
from generate.sbom import packages
from image import debian_lock
from image.build import LOCKS, ROOT, build, read_source
from image.oci import Image, encode, pack_archive
from image.problem import ImageProblem
from image.provenance import BuiltSource, make_statement
from image.sbom import make_image_bill
from image.signature import make_payload, read_key, seal, sign

NAME, FILES = f"claimctl:{__version__}", f"claimctl-{__version__}"
_NAME = re.compile(r"[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m image", description=__doc__)
    parser.add_argument("--key", type=Path, help="a private key in PEM to sign the image with")
    parser.add_argument("--name", default=NAME, help="REPOSITORY:TAG")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to write to")
    options = parser.parse_args(arguments)
    try:
        print(write_image(options.name, options.key, options.dist))
    except ImageProblem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.code
    return 0


def write_image(name: str, key_file: Path | None, dist: Path) -> str:
    """Build, and write the archive with everything that belongs beside it.

    Returns:
        one line about what was written.
    """
    if not _NAME.fullmatch(name):
        raise ImageProblem(f"NAME={name}: expected REPOSITORY:TAG", 2)
    # before the build, which takes half a minute
    key = read_key(key_file) if key_file else None
    built = read_source()
    if built.changed:
        print(f"warning: files differ from the commit {built.commit[:12]}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="claimctl-image-") as work:
        made = build(built, Path(work))
    files = {"oci.tar": pack_archive(made, name)} | make_statements(made, name, built)
    if key:
        signed = make_payload(name, made.manifest)
        files["sig.json"] = signed
        files["sig"] = sign(key, signed).encode() + b"\n"
        files["intoto.jsonl"] = seal(key, files["provenance.json"]) + b"\n"
    dist.mkdir(parents=True, exist_ok=True)
    # a signature of an earlier build does not fit this one
    for stale in dist.glob(f"{FILES}.*"):
        stale.unlink()
    for kind, data in files.items():
        (dist / f"{FILES}.{kind}").write_bytes(data)
    size = len(files["oci.tar"]) / 1e6
    return f"{FILES}.oci.tar: {name}, {size:.1f} MB, {made.manifest}"


def make_statements(made: Image, name: str, built: BuiltSource) -> dict[str, bytes]:
    """The bill of materials and the provenance."""
    bill = make_image_bill(packages(part("image")), debian_lock.read(), made.manifest)
    origin = make_statement(name, made.manifest, built, LOCKS)
    return {"cdx.json": encode(bill), "provenance.json": encode(origin)}


if __name__ == "__main__":
    raise SystemExit(main())
