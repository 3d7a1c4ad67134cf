"""What the image has that no package brings."""

from __future__ import annotations

from pathlib import Path

from image.rootfs import USER, join_certificates, make_skeleton
from image.tree import make_file


def test_certificates_are_joined_in_the_order_of_their_names() -> None:
    tree = {
        "usr/share/ca-certificates/b.crt": make_file("b"),
        "usr/share/ca-certificates/a.crt": make_file("a\n"),
        "usr/share/other": make_file("no"),
    }
    assert join_certificates(tree) == b"a\nb\n"


def test_nobody_can_log_in() -> None:
    users = (make_skeleton()["etc/passwd"].data or b"").decode().splitlines()
    assert [line.split(":")[2] for line in users] == ["0", "65532"]
    assert {line.split(":")[6] for line in users} == {"/nologin"}


def test_it_runs_as_the_user_of_the_deployment() -> None:
    deployment = Path(__file__).parents[3] / "deploy" / "controller.yaml"
    assert f"runAsUser: {USER}" in deployment.read_text()
