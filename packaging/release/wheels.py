"""The wheel of claimctl with what only a release has: manual pages and a bill of materials."""

from __future__ import annotations

import tempfile
from pathlib import Path

from generate import man, sbom
from generate.wheels import EXTRAS, build_wheel

ROOT = Path(__file__).parents[2]


def build_release_wheel(folder: Path) -> Path:
    """Build the wheel with the extras, and write it to an empty folder."""
    with tempfile.TemporaryDirectory() as extras:
        write_extras(Path(extras))
        return build_wheel(ROOT, folder, {EXTRAS: extras})


def write_extras(folder: Path) -> None:
    """Write what ``packaging/hatch_build.py`` packs into the wheel of a release."""
    (folder / "man").mkdir()
    for name, text in man.pages().items():
        (folder / "man" / name).write_text(text, encoding="utf-8")
    (folder / sbom.FILE).write_text(sbom.text("claimctl"), encoding="utf-8")
