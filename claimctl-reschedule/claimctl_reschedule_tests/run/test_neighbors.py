"""What an API server says about the gate by which its scheduler makes room for resizes."""

from __future__ import annotations

import pytest

from claimctl_reschedule.plan.observed import Gate
from claimctl_reschedule.run.neighbors import RESIZE_GATE, gate_in_metrics

OTHER = 'kubernetes_feature_enabled{name="InPlacePodVerticalScaling",stage=""} 1\n'


@pytest.mark.parametrize(
    ("lines", "gate"),
    [
        ("", Gate.OFF),
        (OTHER, Gate.OFF),
        (f'{OTHER}kubernetes_feature_enabled{{name="{RESIZE_GATE}",stage="ALPHA"}} 0\n', Gate.OFF),
        (f'{OTHER}kubernetes_feature_enabled{{name="{RESIZE_GATE}",stage="ALPHA"}} 1\n', Gate.ON),
        (f'kubernetes_feature_enabled{{stage="BETA",name="{RESIZE_GATE}"}} 1.0\n', Gate.ON),
        (f'# kubernetes_feature_enabled{{name="{RESIZE_GATE}"}} 1\n', Gate.OFF),
    ],
)
def test_the_gate_is_on_if_the_page_says_so(lines: str, gate: Gate) -> None:
    assert gate_in_metrics(lines) is gate
