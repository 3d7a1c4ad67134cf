"""The lock files: what is installed everywhere, byte for byte."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


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


def test_tests_and_measurements_run_with_what_users_get() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()
    assert pins("requirements.lock").items() <= pins("requirements-bench.lock").items()


def test_every_pin_has_hashes() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-bench.lock"):
        entries = re.split(r"^(?=[A-Za-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)
        assert [entry for entry in entries if entry.strip() and "--hash=sha256:" not in entry] == []
