"""What ``python -m tests.model`` and the tests search: every scenario but the larger ones."""

from __future__ import annotations

from tests.model.ahead import AHEAD_SCENARIOS
from tests.model.gates import GATE_SCENARIOS
from tests.model.requests import REQUEST_SCENARIOS
from tests.model.restarts import CHECKPOINT_SCENARIOS
from tests.model.scenarios import SCENARIOS, Scenario
from tests.model.traps import TRAP_SCENARIOS
from tests.model.waiters import WAITER_SCENARIOS

PLAYED: tuple[Scenario, ...] = (
    *SCENARIOS,
    *AHEAD_SCENARIOS,
    *CHECKPOINT_SCENARIOS,
    *REQUEST_SCENARIOS,
    *GATE_SCENARIOS,
    *TRAP_SCENARIOS,
    *WAITER_SCENARIOS,
)
