"""The pages in docs/ name what the code has, and their manifests are valid."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.controller.checkpoint import ANNOTATION
from claimctl.reservation.annotation import IDLE_TIMEOUT_ANNOTATION, RETENTION_ANNOTATION
from claimctl.wire.reservations import (
    FINALIZER,
    MANAGED_LABEL,
    POD_GROUP_ANNOTATION,
    REALLOCATE_ANNOTATION,
    REALLOCATE_FOR_ANNOTATION,
    RELEASE_ANNOTATION,
    RESERVE_ANNOTATION,
)
from claimctl_reschedule.policyfile.reading import check
from tests.support.claim_server import NAMESPACE, Server

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PROJECTS = ROOT.glob("*/pyproject.toml")
NAMES = {
    ANNOTATION,
    FINALIZER,
    IDLE_TIMEOUT_ANNOTATION,
    MANAGED_LABEL,
    POD_GROUP_ANNOTATION,
    REALLOCATE_ANNOTATION,
    REALLOCATE_FOR_ANNOTATION,
    RELEASE_ANNOTATION,
    RESERVE_ANNOTATION,
    RETENTION_ANNOTATION,
}
_CODE = re.compile(r'"((?:claimctl\.io|kube-in-process)/[a-z-]+)"')
NO_ANNOTATIONS = {
    "claimctl.io/controller": "the name of the component in Events and in `managed-by`",
    "claimctl.io/rescheduler": "the name of `claimctl reschedule` in Events",
    "claimctl.io/aggregate-to-controller": "a label of ClusterRoles that add to the rights",
    "claimctl.io/fleet": "a label of the stand-in for kubelets in demonstrations",
}


def test_the_page_has_every_annotation_of_the_code() -> None:
    page = (DOCS / "reference" / "annotations.md").read_text(encoding="utf-8")
    folders = (ROOT / name for name in ("claimctl", "claimctl-reschedule", "kube-in-process"))
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    texts = (each.read_text(encoding="utf-8") for each in paths)
    used = {name for text in texts for name in _CODE.findall(text)} - NO_ANNOTATIONS.keys()
    assert {name for name in used | NAMES if name not in page} == set()


POLICY = "DeschedulerPolicy"
"""A file that people write, and no object of the cluster."""


@pytest.mark.parametrize("page", ["reschedule.md", "reschedule-rules.md", "tutorial.md"])
def test_every_policy_of_a_page_can_be_used(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    found = [each for block in blocks for each in yaml.safe_load_all(block)]
    policies = [each for each in found if each["kind"] == POLICY]
    assert policies
    assert [check(each).skipped for each in policies] == [()] * len(policies)


def test_the_policy_that_is_shipped_can_be_used() -> None:
    shipped = yaml.safe_load((ROOT / "deploy" / "rescheduler" / "base" / "policy.yaml").read_text())
    limits = check(yaml.safe_load(shipped["data"]["policy.yaml"])).policy.limits
    assert limits.total == 20


def manifests(page: str) -> list[dict[str, Any]]:
    """The objects in the YAML blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    found = [each for block in blocks for each in yaml.safe_load_all(block)]
    return [each for each in found if each["kind"] != POLICY]


PLURALS = {
    "ClaimReservation": "claimreservations",
    "Deployment": "deployments",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "StatefulSet": "statefulsets",
}


@pytest.mark.parametrize("page", ["howto.md", "tutorial.md"])
async def test_the_server_takes_every_manifest_of_a_page(page: str) -> None:
    found = manifests(page)
    assert len(found) >= 2
    for each in found:
        server = Server.started()
        body = {**each, "metadata": {**each["metadata"], "namespace": NAMESPACE}}
        server.admin.create(PLURALS[each["kind"]], body)


def test_each_issue_form_asks_for_something() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 4
    for form in forms:
        if form.stem != "config":
            found = yaml.safe_load(form.read_text(encoding="utf-8"))
            assert {"name", "description", "body"} <= found.keys()
            assert all({"type", "id", "attributes"} <= each.keys() for each in found["body"])


def test_fences_are_plain_so_that_the_pages_are_built_with_blocks() -> None:
    """The builder takes a word behind a fence, and nothing more."""
    found = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in DOCS.rglob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("```") and not re.fullmatch(r"```[a-z]*", line)
    ]
    assert found == []


def test_what_never_happens_is_said_of_the_controller_alone() -> None:
    """``claimctl reschedule`` evicts pods."""
    page = (DOCS / "concepts.md").read_text(encoding="utf-8")
    heading = next(
        part for part in page.split("## ") if "does not delete pods, and does not evict" in part
    )
    assert heading.startswith("What the controller never does\n")
    assert "`claimctl reschedule` evicts pods" in heading


FOLDERS = {"claimctl": ".", **{name.parent.name: f"./{name.parent.name}" for name in PROJECTS}}
"""By the name of a distribution, its folder in a clone."""


def folders_needed_by(folder: str) -> set[str]:
    """The folders of the distributions that the one in a folder needs."""
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    names = {re.split(r"[<>=]", need)[0] for need in project["project"]["dependencies"]}
    return {FOLDERS[name] for name in names & FOLDERS.keys()}


def test_an_installation_from_a_clone_names_all_that_it_needs() -> None:
    """pip looks on an index for the distribution of a folder that is not named."""
    assert folders_needed_by("./claimctl-reschedule") == {"."}
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/*.md")]
    commands = [
        (page.name, command.split())
        for page in pages
        for command in re.findall(r"pip install((?: \.[-\w/]*)+)", page.read_text(encoding="utf-8"))
    ]
    assert ("README.md", ["."]) in commands
    for name, folders in commands:
        needs = {need for folder in folders for need in folders_needed_by(folder)}
        assert needs <= {*folders}, name


INSTALLATION = re.compile(
    r"(?:pip install|pipx run --spec|uvx --from) (?:-\S+ )*"
    r"['\"]?(?:claimctl|kube-in-process)(?![-\w])"
)
"""A command that takes the package from an index, on which nobody owns its name."""


def test_no_text_takes_claimctl_from_an_index_of_packages() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/*.md")]
    code = [path for name in ("claimctl", "packaging") for path in (ROOT / name).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in (*pages, *code)}
    assert INSTALLATION.search("pip install 'claimctl[demo]'")
    assert {
        str(path): match for path, text in texts.items() if (match := INSTALLATION.search(text))
    } == {}
