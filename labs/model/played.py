"""What ``python -m labs model`` and the tests search: every scenario but the larger ones."""

from __future__ import annotations

from labs.model.ahead import AHEAD_SCENARIOS
from labs.model.gates import GATE_SCENARIOS
from labs.model.requests import REQUEST_SCENARIOS
from labs.model.restarts import CHECKPOINT_SCENARIOS
from labs.model.scenarios import SCENARIOS, Scenario
from labs.model.traps import TRAP_SCENARIOS
from labs.model.waiters import WAITER_SCENARIOS

PLAYED: tuple[Scenario, ...] = (
    *SCENARIOS,
    *AHEAD_SCENARIOS,
    *CHECKPOINT_SCENARIOS,
    *REQUEST_SCENARIOS,
    *GATE_SCENARIOS,
    *TRAP_SCENARIOS,
    *WAITER_SCENARIOS,
)
