"""Plants bugs in claimctl, one at a time; the torture tests must catch each of them.

Without a name all bugs are listed as caught or missed. With a name that bug is
planted in this process and hunted: one module is changed while it is imported, and no file.
A bug counts as caught only by a case that passes without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.real.flags import Parser, number

from labs.hunting import ended, hunt_all, in_process, named
from labs.planting import Mutant, plant

PATIENCE = 360.0
"""CPU seconds for the hunt of one bug."""

RELEASE, BLOCKERS = "claimctl.reservation.release.protocol", "claimctl.reservation.users.blockers"
LIST, CLAIMS = (
    "claimctl.reservation.reserved_for.consistency",
    "claimctl.controller.observations.claims",
)
MUTANTS = (
    Mutant(
        "skip the settle wait",
        RELEASE,
        "next_step",
        "settle = not fence and (deleting or closed)",
        "settle = False",
    ),
    Mutant(
        "deallocate without a fence",
        RELEASE,
        "next_step",
        "(bool(taken_out) or (snapshot.needs_fence and not closed))",
        "bool(taken_out)",
    ),
    Mutant(
        "drop the resourceVersion precondition",
        "claimctl.kube.client",
        "Client.json_patch",
        """{"op": "replace", "path": path, "value": version}""",
        """{"op": "test", "path": "/metadata/uid", "value": meta.uid}""",
    ),
    Mutant(
        "take the cache for a live LIST",
        "claimctl.controller.live_reads",
        "Investigator._list",
        """
        pods = await self._lists.get(snapshot.namespace)
        caught_up = not need.vanished or await self._cache.probes.catch_up(
            pods.version, CATCH_UP_SECONDS
        )
        """,
        """
        from claimctl.controller.shared_lists import PodList
        uids = frozenset(pod.metadata.uid for pod in snapshot.pods)
        pods = PodList("", snapshot.pods, uids, ())
        caught_up = True
        """,
    ),
    Mutant(
        "deallocate in two writes",
        RELEASE,
        "next_step",
        "WriteList(version, (), deallocate=True, reason=reason)",
        "WriteList(version, (), deallocate=not snapshot.references, reason=reason)",
    ),
    Mutant("ignore ghosts", BLOCKERS, "blockers", "ghost_blockers(snapshot)", "()"),
    Mutant("forget the blind wait", BLOCKERS, "blockers", "unseen_history(snapshot)", "()"),
    Mutant(
        "believe the cache after a gap",
        CLAIMS,
        "Memories.pods_listed",
        "self._pods_listed, self._pods_listed_at = version, self._clock.monotonic()",
        "self._pods_listed = self._pods_listed or version",
    ),
    Mutant(
        "take any claim that was once free for one that was watched",
        CLAIMS,
        "Memories._blind_age",
        "_certainly(observed.made_after, self._pods_listed)",
        "observed.made_after",
    ),
    Mutant(
        "believe a watch that is open to be in time",
        "claimctl.kube.probes",
        "WatchProbes.catch_up",
        "return self._reaches(version)",
        "return self._position.following",
    ),
    Mutant(
        "add references to a claim that is being deleted",
        LIST,
        "_may_add",
        "return snapshot.allocated and not snapshot.deleting",
        "return snapshot.allocated",
    ),
    Mutant(
        "remove what is not known",
        LIST,
        "_Draft.take",
        "self.unknown.append(reference)",
        "entry = None",
    ),
    Mutant(
        "remove pods that the cache lacks, unasked",
        LIST,
        "_Draft._unless_gone",
        "if reference.uid in evidence.gone_pods: return None",
        "return None",
    ),
    Mutant(
        "write no tombstones",
        LIST,
        "_Draft.additions",
        "yield entry",
        "yield from ()",
    ),
    Mutant(
        "write the status in every pass",
        "claimctl.reservation.status.desired",
        "decide_statuses",
        "if reservation.status == status or goes: continue",
        "",
    ),
    Mutant(
        "take the finalizer without a record",
        "claimctl.reservation.decide",
        "decide",
        "finalizer_step(snapshot, on_record=facts.on_record)",
        "finalizer_step(snapshot, on_record=True)",
    ),
    Mutant(
        "leave the finalizer",
        RELEASE,
        "finalizer_step",
        "CLAIM_FINALIZER not in claim.metadata.finalizers",
        "True",
    ),
    Mutant(
        "hold on when a Job has ended",
        "claimctl.reservation.facts.workloads",
        "observe",
        "WorkloadPhase.ENDED",
        "WorkloadPhase.ACTIVE",
    ),
    Mutant(
        "take a phase for the end of containers",
        "claimctl.reservation.facts.pods",
        "is_done",
        "return not any(container.state.running for container in _containers(pod))",
        "return True",
    ),
    Mutant(
        "give up no device that cannot be reached",
        "claimctl.reservation.assessment.retention",
        "_by_waiting_pods",
        "since is None or timeout is None",
        "True",
    ),
    Mutant(
        "keep following from a version that is gone",
        "claimctl.kube.informer",
        "Informer._follow",
        """
        self._page_size = _FIRST_PAGE if self._position.version else 0
        self._position.version = ""
        """,
        "self._page_size = _FIRST_PAGE if self._position.version else 0",
    ),
    Mutant(
        "let a reservation go before its release",
        "claimctl.reservation.release.objects",
        "remove_reservation_finalizers",
        "if not is_finished_with_claim(facts, retention): continue",
        "",
    ),
    Mutant(
        "forget who is being released after a restart",
        "claimctl.reservation.assessment.assess",
        "assess",
        "record and record.claim_uid == claim.metadata.uid",
        "False",
    ),
    Mutant(
        "take out somebody else's hold in a downgrade",
        "claimctl.downgrade.expansion",
        "_obstacle",
        "if unknown: return ExpansionObstacle.UNKNOWN_REFERENCE",
        "",
    ),
    Mutant(
        "record what a downgrade replaces after the write",
        "claimctl.downgrade.prepare",
        "_Preparation.begin",
        "await self.report(PlanPhase.EXPANDING)",
        "",
    ),
    Mutant(
        "take a conflict for done",
        "claimctl.controller.reconcilers.claim",
        "ClaimReconciler._round",
        "OVERTAKEN",
        "DONE",
    ),
    Mutant(
        "list a pod again whose entry was removed",
        "claimctl.reservation.reserved_for.listing_ahead",
        "_was_never_listed",
        "pod.metadata.uid not in seen.entry_age",
        "True",
    ),
    Mutant(
        "list a pod ahead that has a PodGroup",
        "claimctl.reservation.reserved_for.listing_ahead",
        "_is_simple",
        "not alone or spec.workload_ref is not None",
        "False",
    ),
    Mutant(
        "list pods ahead without the hold",
        LIST,
        "consistent_list",
        "draft.entries |= {reference.uid: reference for reference in ahead}",
        """
        draft.entries |= {reference.uid: reference for reference in ahead}
        if ahead: draft.entries = {uid: each for uid, each in draft.entries.items() if is_pod(each)}
        """,
    ),
    Mutant(
        "forget when the entry of a pod was removed",
        "claimctl.reservation.users.blockers",
        "closed_age",
        "seen.entry_age.get(pod.metadata.uid, seen.watched_age)",
        "seen.watched_age",
    ),
    Mutant(
        "forget that devices may have to be made ready",
        "claimctl.reservation.users.blockers",
        "binding_seconds",
        "_may_wait_for_devices(snapshot, pod)",
        "False",
    ),
    Mutant(
        "take out the entry of a pod that a scheduler listed",
        "claimctl.reservation.users.blockers",
        "entries_to_take_out",
        "consumers.removable & _yielding(reason, consumers)",
        "frozenset(snapshot.listed_uids & consumers.pending.keys())",
    ),
    Mutant(
        "let a hold that is asked to go and a pod that it keeps out wait for each other",
        "claimctl.reservation.users.blockers",
        "_yielding",
        "frozenset(consumers.stuck)",
        "frozenset()",
    ),
    *(
        Mutant(
            f"ignore pods that may be bound: {reason}",
            "claimctl.reservation.users.blockers",
            "users_among",
            "(deleting or not is_open(snapshot, pod))",
            f"reason != {reason!r} and (deleting or not is_open(snapshot, pod))",
        )
        for reason in ("Withdrawn", "ClaimDeleted", "WorkloadRecreated", "Reallocated")
    ),
)
"""The case of HoldYielded, which takes 256 pods, is in test_blockers_binding.py."""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs torture-mutants", __doc__)
    seconds, names = number(1, kind=float), [mutant.name for mutant in MUTANTS]
    parser.add_argument("--budget", type=seconds, default=PATIENCE, help="CPU seconds for a bug")
    parser.add_argument("name", nargs="?", choices=names)
    options = parser.parse_args(arguments)
    if options.name is None:
        hunt_one = in_process("torture-mutants", f"--budget={options.budget}")
        return hunt_all(names, hunt_one, workers=None)
    plant(named(MUTANTS, options.name))
    from labs.torture.mutant_search import hunt

    return ended(hunt(options.budget))
