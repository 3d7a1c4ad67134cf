"""What ``claimctl controller`` makes of its flags."""

from __future__ import annotations

import pytest

from claimctl.cli import main
from claimctl.cli.access import Access
from claimctl.commands.controller import work


def test_the_flags_of_the_connection_keep_their_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    accesses: list[Access] = []

    def note(access: Access, *_: object, **__: object) -> int:
        accesses.append(access)
        return 0

    monkeypatch.setattr(work, "run_controller", note)
    assert main.run(["controller", "--kubeconfig", "f", "--context", "c", "--as", "jane"]) == 0
    assert accesses == [Access("f", "c", as_user="jane")]
