"""The wheel as users get it."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

from claimctl import __version__
from generate import man, sbom
from generate.wheels import build_wheel
from hatch_build import for_index
from release.wheels import build_release_wheel

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_release_wheel(tmp_path_factory.mktemp("wheel"))


def test_another_build_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another folder, at another time, of files with other times."""
    first = build_wheel(ROOT, tmp_path / "first")
    unwanted = shutil.ignore_patterns(".*", "tests", "labs", "bench", "__pycache__")
    copied = shutil.copytree(ROOT, tmp_path / "copy", ignore=unwanted, copy_function=shutil.copy)
    again = build_wheel(copied, tmp_path / "again")
    assert again.name == first.name
    assert again.read_bytes() == first.read_bytes()


def test_only_a_release_carries_what_is_made_for_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(ROOT, tmp_path)) as archive:
        assert [name for name in archive.namelist() if "/sboms/" in name or ".data/" in name] == []


@pytest.fixture(scope="module")
def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_every_module_and_table_is_in_it_and_no_test(contents: dict[str, bytes]) -> None:
    kinds = (".py", ".json", ".txt")
    packed = {
        name
        for name in contents
        if name.startswith("claimctl/") and name.endswith(kinds)
        if not name.startswith("claimctl/_manifests/")
    }
    files = (path for path in (ROOT / "claimctl").rglob("*") if path.suffix in kinds)
    assert packed == {path.relative_to(ROOT).as_posix() for path in files}
    folders = {name.partition("/")[0] for name in contents}
    assert {folder.partition("-")[0] for folder in folders} == {"claimctl"}
    assert "claimctl/py.typed" in contents


@pytest.mark.parametrize("directory", ["crds", "rbac", "deploy"])
def test_the_manifests_are_in_it(contents: dict[str, bytes], directory: str) -> None:
    prefix = f"claimctl/_manifests/{directory}/"
    packed = {
        name.removeprefix(prefix): data
        for name, data in contents.items()
        if name.startswith(prefix)
    }
    folder = ROOT / directory
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert packed == {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_it_carries_its_bill_of_materials(contents: dict[str, bytes]) -> None:
    packed = contents[f"claimctl-{__version__}.dist-info/sboms/claimctl.cdx.json"]
    assert packed.decode() == sbom.text("claimctl")


def test_both_names_of_the_command_are_entry_points(contents: dict[str, bytes]) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(contents[f"claimctl-{__version__}.dist-info/entry_points.txt"].decode())
    assert dict(parser["console_scripts"]) == {
        "claimctl": "claimctl.cli.entry:main",
        "kubectl-claim": "claimctl.cli.entry:main",
        "kubectl_complete-claim": "claimctl.cli.entry:complete",
    }


def test_the_demonstration_has_a_wheel_of_its_own(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(ROOT / "claimctl-demo", tmp_path)) as archive:
        names = archive.namelist()
        parser = configparser.ConfigParser()
        parser.read_string(archive.read("claimctl_demo-0.1.0.dist-info/entry_points.txt").decode())
    assert parser["claimctl.extensions"]["demo"] == "claimctl_demo.extension:EXTENSION"
    folders = {name.partition("/")[0] for name in names}
    assert folders == {"claimctl_demo", "claimctl_witness", "claimctl_demo-0.1.0.dist-info"}
    assert {"claimctl_demo/py.typed", "claimctl_witness/py.typed"} <= set(names)


def test_metadata_has_licence_and_python_version(contents: dict[str, bytes]) -> None:
    metadata = Parser().parsestr(contents[f"claimctl-{__version__}.dist-info/METADATA"].decode())
    assert (metadata["Version"], metadata["License-Expression"], metadata["Requires-Python"]) == (
        __version__,
        "Apache-2.0",
        ">=3.11",
    )
    licence = contents[f"claimctl-{__version__}.dist-info/licenses/LICENSE"]
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert b"Apache License" in licence


def test_no_link_of_its_description_leads_nowhere(contents: dict[str, bytes]) -> None:
    metadata = Parser().parsestr(contents[f"claimctl-{__version__}.dist-info/METADATA"].decode())
    assert metadata["Description-Content-Type"] == "text/markdown"
    description = str(metadata.get_payload())
    assert description.startswith("# claimctl")
    assert re.findall(r"\]\((?!https://)[^)]*\)", description) == []


@pytest.mark.parametrize(
    ("repository", "text"),
    [
        ("", "See docs/a.md, [uv](https://docs.astral.sh/uv/) and ."),
        (
            "https://example.com/claimctl",
            "See [docs/a.md](https://example.com/claimctl/blob/HEAD/docs/a.md), "
            "[uv](https://docs.astral.sh/uv/) and "
            "![x](https://example.com/claimctl/raw/HEAD/docs/x.svg).",
        ),
    ],
)
def test_links_into_the_repository_are_absolute_or_text(repository: str, text: str) -> None:
    page = "See [docs/a.md](docs/a.md), [uv](https://docs.astral.sh/uv/) and ![x](docs/x.svg)."
    assert for_index(page, repository) == text


def test_it_carries_the_manual_pages(contents: dict[str, bytes]) -> None:
    folder = f"claimctl-{__version__}.data/data/share/man/man1/"
    packed = {
        name.removeprefix(folder): data.decode()
        for name, data in contents.items()
        if folder in name
    }
    assert packed == man.pages()


def test_the_command_runs_from_it_and_prints_manifests_without_a_clone(wheel: Path) -> None:
    script = (
        "import claimctl; from claimctl.cli.main import run; print(claimctl.__file__); "
        "run(['--version']); "
        "run(['install', '--image', 'i:1', '--dry-run', '-o', 'yaml'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    where, version, manifests = done.stdout.split("\n", 2)
    assert where.startswith(str(wheel))
    assert version.startswith(f"claimctl {__version__} ")
    kinds = [each["kind"] for each in yaml.safe_load_all(manifests)]
    assert kinds[0] == "CustomResourceDefinition"
    assert "Deployment" in kinds
