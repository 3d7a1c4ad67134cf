"""The lock files: what is installed everywhere, byte for byte."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from generate.image import left_out, requirements
from tests.support.locks import pins

ROOT = Path(__file__).parents[3]
DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, BUILD = DOCUMENT["project"], DOCUMENT["build-system"]
LOCKS = [f"requirements{kind}.lock" for kind in ("", "-image", "-build", "-dev", "-bench", "-helm")]


def unmet(requirements: list[str], locked: dict[str, str]) -> list[str]:
    parsed = map(Requirement, requirements)
    return [
        str(each)
        for each in parsed
        if not each.specifier.contains(locked.get(canonicalize_name(each.name), "0"), True)
    ]


def test_the_locks_meet_what_the_project_asks_for() -> None:
    dependencies: list[str] = PROJECT["dependencies"]
    development: list[str] = PROJECT["optional-dependencies"]["dev"]
    assert unmet(dependencies, pins("requirements.lock")) == []
    measured: list[str] = PROJECT["optional-dependencies"]["bench"]
    assert unmet(dependencies + development, pins("requirements-dev.lock")) == []
    assert unmet(dependencies + measured, pins("requirements-bench.lock")) == []


def test_installing_them_prints_errors_only() -> None:
    """Warnings about the indexes of a machine would hide what a newcomer should see."""
    text = (ROOT / "Makefile").read_text()
    assert re.findall(r"pip install (-qq )?", text) == ["-qq "]


def test_tests_and_measurements_run_with_what_users_get() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()
    assert pins("requirements.lock").items() <= pins("requirements-bench.lock").items()


def test_the_image_has_what_users_get_without_what_only_they_need() -> None:
    everything, image = pins("requirements.lock"), pins("requirements-image.lock")
    assert image.items() <= everything.items()
    assert unmet(requirements(), image) == []
    assert not left_out() & image.keys()
    # what only these packages need is gone, too
    assert "cryptography" not in image
    # the DeviceClasses of common drivers compare attributes
    assert "common-expression-language" in image


def test_a_wheel_is_built_with_what_the_tests_build_it_with() -> None:
    build = pins("requirements-build.lock")
    assert build.items() <= pins("requirements-dev.lock").items()
    assert unmet(BUILD["requires"], build) == []


def test_every_pin_has_hashes() -> None:
    for name in LOCKS:
        entries = re.split(r"^(?=[A-Za-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)
        entries = [entry for entry in entries if not entry.startswith("#")]
        assert [entry for entry in entries if entry.strip() and "--hash=sha256:" not in entry] == []
