"""What ``claimctl controller`` makes of its flags."""

from __future__ import annotations

import pytest

from claimctl.cli import main, process
from claimctl.cli.access import Access


def test_the_flags_of_the_connection_keep_their_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    accesses: list[Access] = []

    async def note(access: Access, *_: object) -> None:
        accesses.append(access)

    monkeypatch.setattr(process, "serve", note)
    assert main.run(["controller", "--kubeconfig", "f", "--context", "c", "--as", "jane"]) == 0
    assert accesses == [Access("f", "c", as_user="jane")]
