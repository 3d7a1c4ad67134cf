"""Which ghosts a statement ends, and that it ends no pod that vanished after it."""

from __future__ import annotations

import pytest

from claimctl.reservation.users.several import several
from claimctl.reservation.users.statements import Statements, with_statement
from claimctl.wire.reservations import ForceDeletedPod

GHOST = ForceDeletedPod(uid="u", name="train-1", node_name="node-0")
MANY = several(GHOST)


@pytest.mark.parametrize(
    ("value", "ghost", "gone_by", "ended"),
    [
        ("u", GHOST, "", True),
        ("x,u", GHOST, "", True),
        ("x", GHOST, "5", False),
        ("node/node-0@9", GHOST, "9", True),
        ("node/node-0@9", GHOST, "10", False),
        ("node/node-0@9", GHOST, "", False),
        ("node/node-0@9,node/node-0@20,node/node-0@3", GHOST, "10", True),
        ("node/node-1@9", GHOST, "5", False),
        ("pod/train-1@9", GHOST, "5", True),
        ("pod/u@9", GHOST, "5", True),
        ("pod/*@9", GHOST, "5", True),
        ("pod/*@9", GHOST, "10", False),
        ("pod/train-2@9", GHOST, "5", False),
        ("node/@9", ForceDeletedPod(uid="u"), "5", False),
        (MANY.uid, MANY, "5", False),
        (f"pod/{MANY.uid}@9", MANY, "5", True),
        (f"pod/{MANY.uid}@9", MANY, "10", False),
        (f"pod/*@{'9' * 200_000}", GHOST, "5", False),
        ("pod/*@,pod/*@x,@9,pod/@9,", GHOST, "5", False),
    ],
)
def test_what_a_statement_ends(
    value: str, ghost: ForceDeletedPod, gone_by: str, ended: bool
) -> None:
    assert Statements([value]).tell_of(ghost, gone_by) is ended


def test_a_later_statement_replaces_an_earlier_one() -> None:
    once = with_statement("old", "node/node-0", "9", [GHOST, MANY])
    assert once == "node/node-0@9,old,u"
    assert with_statement(once, "node/node-0", "12", []) == "node/node-0@12,old,u"
