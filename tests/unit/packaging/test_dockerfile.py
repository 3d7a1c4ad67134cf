"""What can be said about the image without a registry to pull its base image from."""

from __future__ import annotations

import json
import re
from pathlib import Path

from image.build import WHEELS, make_settings
from image.rootfs import USER

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text()
JOINED = TEXT.replace("\\\n", " ")


def test_it_copies_only_files_that_are_there_and_that_docker_may_see() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (?!--from)(.*)$", JOINED, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists()
            assert source not in ignored


def test_what_the_wheel_needs_is_copied() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", TEXT, re.MULTILINE))
    assert copied == {"claimctl", "claimctl_demo", "crds", "rbac", "deploy", "sbom", "man"}


def test_everything_that_is_installed_is_locked_with_hashes() -> None:
    installs = re.findall(r"pip\S* (?:--python \S+ )?install ([^&\n]*)", JOINED)
    assert len(installs) == 3
    for flags in installs:
        assert "--no-deps" in flags
        assert "--require-hashes" in flags or "/dist/" in flags


def test_the_base_image_can_be_named_by_its_digest() -> None:
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${PYTHON}", "${PYTHON}"]
    assert TEXT.count("python:3.13-slim@sha256:...") == 1


def test_its_labels_say_what_it_is() -> None:
    labels = dict(re.findall(r'(org\.opencontainers\.image\.[a-z.]+)="([^"]*)"', TEXT))
    base = labels.pop("org.opencontainers.image.base.name")
    assert (base, labels) == ("${PYTHON}", make_settings("${REVISION}")["Labels"])


def test_it_runs_as_the_image_that_is_built_without_docker() -> None:
    settings = make_settings("")
    last = TEXT.rpartition("\nFROM ")[2]
    [variables] = re.findall(r"^ENV (.*)$", last, re.MULTILINE)
    assert [each.replace(":$PATH", ":/usr/bin") for each in variables.split()] == sorted(
        settings["Env"], key=lambda each: each.startswith("PATH=")
    )
    assert f"USER {settings['User']}\n" in last
    assert f"ENTRYPOINT {json.dumps(settings['Entrypoint'])}\n" in last
    # and both have the packages of one lock
    assert WHEELS.name in TEXT


def test_it_runs_as_the_user_of_the_deployment() -> None:
    assert f"USER {USER}:{USER}" in TEXT
    assert f"runAsUser: {USER}" in (ROOT / "deploy/controller.yaml").read_text()
