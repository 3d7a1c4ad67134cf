"""What is wrong with claims, as lines of doctor."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.matters import Matter, MatterKind
from claimctl.commands.doctor.cluster_checks import checks, findings
from claimctl.commands.doctor.model import CheckVerdict, ClaimMatter, ObservedCluster


@pytest.mark.parametrize(
    ("kind", "reserved", "check", "verdict"),
    [
        (MatterKind.RELEASE_WAITS, True, "releases", CheckVerdict.WAITS),
        (MatterKind.PODS_WAIT, True, "waiting-pods", CheckVerdict.PROBLEM),
        (MatterKind.PODS_WAIT, False, "waiting-pods", CheckVerdict.WAITS),
        (MatterKind.TOO_MANY_DEVICES, False, "waiting-pods", CheckVerdict.PROBLEM),
        (MatterKind.HOLD_OFF, True, "reservations", CheckVerdict.PROBLEM),
        (MatterKind.NODE_CORDONED, True, "held-devices", CheckVerdict.PROBLEM),
        (MatterKind.NODE_CORDONED, False, "held-devices", CheckVerdict.FACT),
        (MatterKind.NOT_READY, True, "reservations", CheckVerdict.OK),
    ],
)
def test_each_kind_of_matter_has_its_check(
    kind: MatterKind, reserved: bool, check: str, verdict: CheckVerdict
) -> None:
    """What is not ready has a line already, which also names reservations without a claim."""
    matter = ClaimMatter("ml", "a", Matter(kind, "it", "why"), reserved)
    shown = checks(ObservedCluster("hold", matters=(matter,)))
    assert [each.verdict for each in shown if each.check == check] == [verdict]


def test_held_devices_are_told_one_by_one_or_counted_with_the_first_claims() -> None:
    gone = Matter(
        MatterKind.NODE_GONE,
        "node n1",
        "it is gone",
        ("to do this: claimctl a", "or: kubectl b or claimctl c"),
    )
    (only,) = findings(ObservedCluster("hold", matters=(ClaimMatter("ml", "a", gone),)))
    assert (only.check, only.namespace, only.object) == ("held-devices", "ml", "a")
    assert only.message == (
        "node n1: it is gone; to do this: `claimctl a`; or: `kubectl b` or `claimctl c`; "
        "see `claimctl explain a -n ml`"
    )
    many = tuple(ClaimMatter("ml", name, gone) for name in "edcba")
    (only,) = findings(ObservedCluster("hold", matters=many))
    assert (only.namespace, only.object) == ("", "")
    assert only.message == (
        "its node does not exist any more: 5 claims, ml/a, ml/b, ml/c and 2 more; see "
        "`claimctl explain a -n ml`"
    )
