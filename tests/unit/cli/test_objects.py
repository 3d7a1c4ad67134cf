"""Every name that kubectl or claimctl prints is a name that commands accept."""

from __future__ import annotations

import pytest
import typer

from claimctl.cli.errors import UsageError
from claimctl.cli.objects import CLAIM, NODE, POD, WORKLOADS, parse

ALL = (CLAIM, POD, NODE, *WORKLOADS)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("train", (CLAIM, "train")),
        ("claim/train", (CLAIM, "train")),
        ("resourceclaim.resource.k8s.io/train", (CLAIM, "train")),
        ("Deployment/train", ("Deployment", "train")),
        ("deploy/train", ("Deployment", "train")),
        ("deployment.apps/train", ("Deployment", "train")),
        ("po/a.b-c", (POD, "a.b-c")),
        ("job.batch/once", ("Job", "once")),
        ("node/n1", (NODE, "n1")),
    ],
)
def test_kinds_and_names(given: str, found: tuple[str, str]) -> None:
    assert parse(given, CLAIM, ALL) == found


@pytest.mark.parametrize("given", ["secret/x", "a/b/c", "/x", "crsv/x"])
def test_other_kinds_are_refused_with_those_that_are_taken(given: str) -> None:
    with pytest.raises(UsageError, match=r"must be one of: resourceclaim, claim, pod, po$"):
        parse(given, CLAIM, (CLAIM, POD))


@pytest.mark.parametrize("given", ["pod/Bad_Name", "pod/", "Bad_Name"])
def test_bad_names(given: str) -> None:
    with pytest.raises(typer.BadParameter, match="DNS name"):
        parse(given, CLAIM, ALL)
