"""What ``python -m labs model`` and the tests search: every scenario but the larger ones."""

from __future__ import annotations

from labs.model.ahead import AHEAD_SCENARIOS
from labs.model.closing import CLOSED_SCENARIOS
from labs.model.gates import GATE_SCENARIOS
from labs.model.late import LATE_SCENARIOS
from labs.model.requests import REQUEST_SCENARIOS
from labs.model.restarts import CHECKPOINT_SCENARIOS
from labs.model.scenarios import SCENARIOS, Scenario
from labs.model.traps import TRAP_SCENARIOS
from labs.model.waiters import WAITER_SCENARIOS

LARGEST = (
    *("podgroup: a pod, a crash", "podgroup: two claimctls", "podgroup: two pods"),
    *("hold: a pod, a crash, a lost answer", "native: two claimctls and a crash"),
    *("podgroup: a workload made again", "native: a pod, a crash, a busy user"),
    "podgroup: a closed node",
    "hold, one pod in the list: scaled to zero and back",
    "hold (KCM 1.34), one pod in the list: scaled to zero and back",
    "hold, one pod in the list: the workload is made again",
    "hold (KCM 1.34), one pod in the list: the workload is made again",
    "hold, one pod in the list: one pod after another, the workload ends",
    "hold, one pod in the list: a surge on a closed node, a force-deletion",
    "hold (KCM 1.34), one pod in the list: a surge on a closed node, a force-deletion",
    "podgroup: a workload ends, and another pod has no group",
    "podgroup: a withdrawal beside two pods, devices out of reach",
    "hold, listing ahead: two pods, a withdrawal from a closed node",
    "hold, listing ahead: two pods, a withdrawal from an idle claim",
    *("hold (KCM 1.34): two pods", "hold (KCM 1.34): a pod, a crash, a lost answer"),
    *("hold: two pods of a held claim", "hold (KCM 1.34): a checkpoint, a restored etcd"),
    "hold, PodGroups served, listing ahead: no pod has a group, two pods",
    *("hold: two claimctls", "hold: a checkpoint, a restored etcd"),
    *("hold: a checkpoint, a pod, two crashes", "native: a checkpoint, a pod, two crashes"),
)
"""These searches take two thirds of the time of all. In the tests they take turns, two or three
each day. Each goes further than others with fewer pods, crashes or actions, which are played each
time.
"""

PLAYED: tuple[Scenario, ...] = (
    *SCENARIOS,
    *AHEAD_SCENARIOS,
    *CHECKPOINT_SCENARIOS,
    *REQUEST_SCENARIOS,
    *GATE_SCENARIOS,
    *TRAP_SCENARIOS,
    *WAITER_SCENARIOS,
    *LATE_SCENARIOS,
    *CLOSED_SCENARIOS,
)
