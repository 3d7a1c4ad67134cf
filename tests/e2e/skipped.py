"""The scenarios that are not played on real clusters, each with its reason.

README.md shows the same list; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.real_cluster import RealCluster


@dataclass(frozen=True, slots=True)
class Skipped:
    """Skipped tests, by name; a single parameter is in brackets.

    Attributes:
        before: the first version on which the tests can be played; (0, 0) for none.
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
            "test_finished_pods_take_places_only_where_kcm_lists_them_again",
        ),
    ),
    Skipped(
        "no server can be had on which the Job controller makes basic PodGroups",
        (
            "test_the_job_shares_its_claim_through_the_group_of_its_pods",
            "test_a_job_in_a_group_without_the_claim_is_not_told_to_change_its_template",
            "test_a_suspended_job_that_loses_its_group_keeps_its_device",
            "test_an_ended_job_gives_its_device_back",
            "test_a_crowd_in_groups_without_the_claim_is_listed_ahead",
        ),
    ),
    Skipped(
        "no server can be had that serves the alphas of 1.37",
        (
            "test_the_device_stays_while_all_pods_go_before_new_ones_come",
            "test_a_pod_whose_eviction_is_requested_keeps_its_place_until_it_goes",
        ),
    ),
    Skipped(
        "the embedded cluster serves texts that a real server refuses",
        (
            "test_no_command_obeys_a_text_of_a_tenant",
            "test_no_text_of_a_kubeconfig_is_obeyed",
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
        "the server does not ask for the right to resourceclaims/binding",
        ("test_without_the_binding_right_the_reservation_says_forbidden",),
        before=(1, 36),
    ),
    Skipped(
        "a withdrawn hold stays until the pods are gone; another scenario shows that",
        (
            "test_removing_the_annotation_lets_go_and_the_pods_keep_their_references",
            "test_withdrawing_beside_pods_that_find_no_node_ends",
            "test_entries_listed_ahead_do_not_stay_behind_a_withdrawn_reservation",
            "test_claimctl_goes_and_running_pods_stay",
            "test_each_failure_on_the_page_ends_well",
            "test_the_crds_may_be_deleted_first",
            "test_a_run_that_is_interrupted_ends_quietly_and_the_next_one_continues",
        ),
        before=(1, 34),
    ),
    Skipped(
        "the server has no pods/resize",
        (
            "test_one_pod_leaves_where_the_scheduler_would_take_three",
            "test_the_first_in_the_order_of_the_kubelet_gets_the_room",
            "test_a_resize_that_was_taken_back_costs_no_pod",
            "test_a_pod_that_must_not_preempt_waits",
            "test_a_victim_that_takes_its_time_is_the_only_one",
        ),
        before=(1, 33),
    ),
    Skipped(
        "binding conditions and taints of devices are off by default",
        (
            "test_pods_that_were_listed_ahead_keep_a_claim_that_is_withdrawn",
            "test_a_pod_that_was_unschedulable_once_keeps_a_claim_that_is_to_be_given_up",
            "test_a_held_device_that_cannot_be_bound_is_given_up",
            "test_a_pod_leaves_a_device_that_evicts_it",
            "test_a_hold_leaves_a_device_that_evicts_its_pods",
            "test_a_pod_runs_after_its_driver_has_reported",
            "test_a_failed_device_is_given_back_and_the_claim_allocated_anew",
            "test_a_taint_of_a_device_moves_its_pod_to_another_device",
            "test_a_rule_about_devices_evicts_their_pods_until_it_is_gone",
        ),
        before=(1, 36),
    ),
    Skipped(
        "MutatingAdmissionPolicies are off by default",
        (
            "test_a_stateful_set_waits_for_the_claims_of_its_ordinals",
            "test_a_new_pod_of_an_index_names_the_same_claim",
            "test_pods_without_an_ordinal_or_a_wish_get_generated_claims",
            "test_a_name_that_is_too_long_is_refused_where_its_owner_tells_it",
        ),
        before=(1, 36),
    ),
    Skipped(
        "the scheduler takes minutes to list 256 pods, one by one, and more if it has to share",
        ("test_two_holds_leave_256_pods_their_places",),
    ),
    Skipped(
        "the scheduler takes as long to bind a pod as the scenario says",
        ("test_a_pod_that_is_just_being_bound_keeps_its_devices",),
    ),
    Skipped(
        "the rights are those of one ServiceAccount, and each scenario here has its own",
        ("test_doctor_says_which_role_the_controller_lacks",),
    ),
    Skipped(
        "etcd is compacted for all scenarios at once; `make torture-real` does that",
        (
            "test_where_the_checkpoint_is_compacted_the_grace_counts",
            "test_a_gap_costs_no_grace_if_the_claim_is_the_same_after_it",
        ),
    ),
    Skipped(
        "requests get the scenario's names, and parameters another form with them",
        (
            "test_a_claim_is_held_and_released",
            "test_a_claim_that_no_client_can_change_is_named_and_left_alone",
            "test_a_reservation_of_such_a_claim_goes_with_its_workload",
            "test_the_same_claim_made_again_is_held",
            "test_a_claim_that_claimctl_makes_can_be_changed",
        ),
    ),
    Skipped(
        "etcd is restored without --bump-revision, and a watch from the lost history is silent",
        ("test_a_controller_that_outlives_a_restore_of_a_moment_knows_the_lost_pods",),
    ),
    Skipped(
        "the controller of a scenario sees no other namespace",
        ("test_an_unreadable_claim_of_a_tenant_costs_the_next_leader_no_grace",),
    ),
    Skipped(
        "real kubelets have faults of their own; nodes/test_unprepares.py plays this one",
        ("test_a_pod_that_runs_with_unprepared_devices_is_seen",),
    ),
    Skipped(
        "the stand-in for kubelets asks the driver sooner after the binding than a kubelet",
        ("test_a_restart_of_the_workload_keeps_the_device",),
    ),
    Skipped(
        "the stand-in for kubelets has no refusals of containers",
        ("test_the_check_names_the_habit_of_a_driver_and_leaves_nothing[refuses-a-second-pod]",),
    ),
    Skipped(
        "it looks at the embedded driver",
        (
            "test_scale_to_0_and_1_keeps_the_device_and_refuses_no_pod",
            "test_a_pod_starts_also_while_the_controller_is_away",
            "test_a_driver_that_nobody_knows_is_found_out_by_its_refusal",
            "test_a_slow_driver_is_suspected_once_at_most",
            "test_a_driver_that_has_started_a_pod_beside_a_hold_is_never_suspected",
            "test_an_idle_claim_at_rest_and_one_whose_workload_ends_are_released",
            "test_a_withdrawn_reservation_leaves_the_pod_and_no_leak",
            "test_a_pod_that_cannot_reach_the_device_moves_the_claim_at_rest",
            "test_a_driver_may_hide_a_device_that_a_pod_uses",
        ),
    ),
    Skipped(
        "it stops a controller of the embedded cluster",
        ("test_a_device_is_not_given_up_by_a_late_cache_of_statefulsets",),
    ),
)


def reason_for(nodeid: str, cluster: RealCluster) -> str:
    """Why a test is skipped on ``cluster``, or ''."""
    name, _, rest = nodeid.rpartition("::")[2].partition("[")
    parameters = rest.removesuffix("]")
    # one of several parameters, or one with hyphens in it
    parts = (parameters, *parameters.split("-"))
    variants = {name, *(f"{name}[{part}]" for part in parts)}
    for each in SKIPPED:
        if each.concerns(cluster) and not variants.isdisjoint(each.tests):
            return each.reason
    return ""
