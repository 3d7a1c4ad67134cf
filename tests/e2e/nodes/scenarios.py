"""Which scenarios are played on real nodes, and which of them one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e import selection

_HERE = Path(__file__).parent
_PATTERNS = (
    "nodes/test_*.py",
    *(
        f"test_controller_{name}.py"
        for name in (
            "hold",
            "listing_ahead",
            "podgroup",
            "reallocation",
            "releases",
            "stuck_pods",
            "traps",
        )
    ),
)
_CORE = frozenset(
    (
        "nodes",
        "test_controller_hold.py",
        "test_controller_reallocation.py",
        "test_controller_releases.py",
    )
)
"""Where the scenarios are that CI plays on nodes: a folder, and files."""
DISTURBING = frozenset(
    (
        "test_a_reboot_of_its_node_ends_a_ghost_at_once",
        "test_another_machine_under_the_name_of_its_node_ends_no_ghost",
        "test_pods_whose_devices_cannot_be_reached_get_others",
        "test_devices_are_given_up_on_request_and_only_once",
        "test_entries_listed_ahead_do_not_stay_behind_a_withdrawn_reservation",
        "test_a_pod_whose_node_is_missing_runs_elsewhere_at_once",
        "test_an_obstacle_that_passes_costs_no_device",
        "test_pods_that_a_killed_scheduler_left_listed_run_elsewhere",
        "test_pods_that_are_drained_while_a_release_is_asked_for_get_other_devices",
        "test_withdrawing_beside_pods_that_find_no_node_ends",
    )
)
"""Scenarios that do something to the nodes, which others share."""
LEFT_OUT = {
    "a node takes 250 pods": (
        "test_600_pods_share_one_claim_with_two_references",
        "test_a_job_with_more_finished_pods_than_places_is_released_by_way_of_its_group",
    ),
    "the kubelet corrects what was written into its Node": (
        "test_older_kubelets_are_reported_before_pods_get_stuck_there",
    ),
}


def files(core: bool) -> list[str]:
    """The files of scenarios; those of the core are fewer."""
    found = sorted(path for pattern in _PATTERNS for path in _HERE.parent.glob(pattern))
    return [str(path) for path in found if not core or {path.name, path.parent.name} & _CORE]


def sort(items: Iterable[pytest.Item]) -> None:
    """Mark the scenarios that need the nodes for themselves, and those that are left out."""
    reasons = {name: reason for reason, names in LEFT_OUT.items() for name in names}
    for item in items:
        name = item.name.partition("[")[0]
        if name in DISTURBING:
            item.add_marker(selection.ALONE)
        if reason := reasons.get(name):
            item.add_marker(pytest.mark.skip(reason=reason))
