"""The scenarios that are not played on real clusters, each with its reason.

docs/testing.md shows the same list; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.elsewhere import RealCluster


@dataclass(frozen=True, slots=True)
class Skipped:
    """Tests by their names, one of several parameters in brackets.

    Attributes:
        before: the first version on which they can be played; (0, 0) for none.
    """

    reason: str
    tests: tuple[str, ...]
    before: tuple[int, int] = (0, 0)

    def concerns(self, cluster: RealCluster) -> bool:
        return self.before == (0, 0) or cluster.version < self.before


SKIPPED = (
    Skipped(
        "feature gates are switched while the servers run",
        (
            "test_a_server_upgraded_under_the_controller_is_followed_in_its_new_version",
            "test_a_cluster_whose_gate_is_off_is_held_in_the_hold_way",
            "test_a_scheduler_without_the_gate_is_noticed_by_the_pods_it_lists",
            "test_kubelets_without_the_gate_are_noticed_by_the_pods_they_do_not_start",
            "test_gates_that_are_switched_while_the_controller_runs_are_noticed",
            "test_a_hold_from_before_the_feature_came_is_fenced_before_its_claim_is_released",
        ),
    ),
    Skipped(
        "the node lifecycle controller gives a node and its pods up after six minutes",
        ("test_pods_whose_devices_cannot_be_reached_get_others[lost]",),
    ),
    Skipped(
        "258 pods, one after the other, take ten minutes",
        ("test_a_job_of_more_pods_than_a_list_has_places_comes_to_its_end",),
    ),
    Skipped(
        "it waits for the default grace of five minutes; others wait for shorter ones",
        ("test_pods_of_a_deleted_deployment_keep_their_devices_until_the_grace_is_over",),
    ),
    Skipped(
        "it stops a controller of KCM for minutes; other leftovers are made, found and freed",
        (
            "test_a_look_writes_nothing_and_says_what_would_be_done",
            "test_a_claim_that_a_reservation_names_is_the_controllers",
            "test_a_pod_that_comes_meanwhile_keeps_its_device",
            "test_a_pod_scheduled_between_the_look_and_a_write_makes_it_conflict",
            "test_a_pod_that_vanished_just_before_has_its_grace",
            "test_the_witness_would_notice_a_grace_that_is_too_short",
            "test_a_pod_that_came_and_vanished_between_two_looks_has_its_grace",
            "test_another_claim_of_the_same_name_is_not_the_one_that_was_found",
            "test_with_less_grace_the_operator_answers_for_it",
            "test_a_reference_that_nobody_knows_is_left_and_reported",
            "test_custom_resources_and_every_other_kind_are_found_by_discovery",
            "test_a_workload_recreated_under_its_name_is_another_one",
            "test_a_group_that_is_gone_does_not_keep_a_claim",
            "test_one_claim_in_trouble_does_not_stop_the_others",
            "test_a_missing_right_is_told_before_anything_was_waited_for",
            "test_a_claim_that_somebody_keeps_changing_is_left_in_the_end",
            "test_a_finalizer_that_somebody_else_left_is_reported_and_left",
            "test_thousands_of_healthy_claims_cost_pages_and_no_questions",
        ),
    ),
    Skipped(
        "the server does not ask for the right to resourceclaims/binding",
        ("test_without_the_binding_right_the_reservation_says_forbidden",),
        before=(1, 36),
    ),
    Skipped(
        "the scheduler takes minutes to list 256 pods, one by one, and more if it has to share",
        ("test_two_holds_leave_256_pods_their_places",),
    ),
)


def reason_for(nodeid: str, cluster: RealCluster) -> str:
    """Why a test is skipped there, or ''."""
    name, _, rest = nodeid.rpartition("::")[2].partition("[")
    variants = {name, *(f"{name}[{each}]" for each in rest.removesuffix("]").split("-"))}
    for each in SKIPPED:
        if each.concerns(cluster) and not variants.isdisjoint(each.tests):
            return each.reason
    return ""
