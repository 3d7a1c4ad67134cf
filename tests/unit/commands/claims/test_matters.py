"""What is wrong with a claim, as a line and as a word."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.matters import Matter, MatterKind, reasons_of


@pytest.mark.parametrize(
    ("matter", "reason", "line"),
    [
        (Matter(MatterKind.NODE_GONE, "node n1", "it is gone"), "NodeGone", "node n1: it is gone"),
        (Matter(MatterKind.PODS_WAIT, "", "1 pod waits"), "PodsWait", "1 pod waits"),
        (Matter(MatterKind.NOT_READY, "it", "why", (), "Forbidden"), "Forbidden", "it: why"),
    ],
)
def test_each_matter_has_a_word_and_a_line(matter: Matter, reason: str, line: str) -> None:
    (part,) = reasons_of([matter])
    assert (part.reason, part.message, str(matter)) == (reason, line, line)
    assert matter.is_of_node == (reason == "NodeGone")
