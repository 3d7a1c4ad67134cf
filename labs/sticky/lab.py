"""Plays random users of sticky claims on kube-in-process, and judges the device of each ordinal.

Users scale, roll, delete pods (also by force), and change templates and settings; controllers are
killed, see the cluster late, or are two. Exit code 1 with the seed of the first run that went
wrong. ``python -m labs sticky --sets 40 --ordinals 20 --seeds 1`` is the large form.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from random import Random
from typing import Any

from kube_in_process.real.flags import Parser, number

from labs.runs import add_seeds, report, seeds, spread, to_its_end
from labs.sticky.judge import YOUNG, StickyJudge
from labs.sticky.leaders import PLURAL, GroupController
from labs.sticky.users import StickySize, StickyUsers
from labs.sticky.wishes import KINDS, StickyPlace
from labs.torture.explorer import Schedule, begun
from labs.torture.faulty_transport import FaultPlan
from labs.torture.final_checks import FinalChecks
from labs.torture.reference import dialects
from labs.torture.stored import missing_pods
from labs.torture.testbed import RunVerdict, Testbed, judge
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE

LIMIT = 100_000.0
"""Virtual seconds after which a run fails."""
DIALECTS = ("hold-1.36", "hold-1.36", "native")
LIVES = (20, 200)
"""The requests of the shortest and of the longest life of a controller while users act."""
MISSED = (1, 120)
"""The first and the last event of a watch that a controller may miss for some time."""
FALTERING = 40.0
"""Seconds for which a claim may be without a hold where controllers wait for a Lease, or where
their requests fail."""
NOTICED = 5.0
"""Seconds until a controller has written changed settings into its ClaimReservations. Afterwards it
is longer than the idle timeout of all."""
STATEFULSETS = "statefulset-controller"
FAULTS = ("", "", "kill", "kill", "two", "lag", "pause", "compact", "thief")


def play(seed: int, size: StickySize) -> RunVerdict:
    """Play the users of a seed."""
    drawn = Schedule.of(seed)
    dialect = drawn.rng.choice(DIALECTS)
    schedule = replace(drawn, dialect=dialect, slow=False, cycles=False, binding=False)
    done = RunVerdict(f"SEED={seed} ({schedule.dialect})")
    to_its_end(_play(schedule, size, done), done, LIMIT)
    return done


async def _play(schedule: Schedule, size: StickySize, done: RunVerdict) -> None:
    rng, trouble = schedule.rng, schedule.rng.random() < 0.5
    options = replace(dialects()[schedule.dialect], nodes=size.nodes, devices_per_node=size.devices)
    people = partial(StickyUsers, size=size, trouble=trouble)
    async with begun(schedule, people, options, FAULTS) as playing:
        testbed, users = playing.testbed, playing.users
        groups = GroupController(testbed.cluster, Random(schedule.seed))
        async with groups.running():
            testbed.plan = partial(_dying, rng)
            for _ in range(size.actions):
                await playing.act()
            testbed.plan = FaultPlan
            done.counts["controllers killed"] += len(testbed.ended)
            users.mend()
            await _conclude(testbed, users, groups, done)
        _judge(testbed, done, faltering=schedule.elect or bool(schedule.rate))
    if not done.good:
        playing.tell(done)


def _dying(rng: Random) -> FaultPlan:
    """The faults of a process that dies after a while, at any of its requests. It may miss an event
    of a watch for some time."""
    return FaultPlan(
        dies_at=rng.randint(*LIVES),
        delivered=rng.random() < 0.5,
        withheld=rng.choice([0, rng.randint(*MISSED)]),
    )


async def _conclude(
    testbed: Testbed, users: StickyUsers, groups: GroupController, verdict: RunVerdict
) -> None:
    """Let all pods run, then let everything go; nothing may stay that nobody asked to keep."""
    checks = FinalChecks(testbed, verdict)
    await checks.come_true(users.help)
    await _all_run(testbed, groups, verdict)
    _give_back(testbed)
    await testbed.sleep(NOTICED)
    await _all_come_back(testbed, groups, verdict)
    if not await testbed.until(
        lambda: not _held_in_vain(testbed), testbed.patience.release, step=20.0
    ):
        verdict.leaks += [f"{name} is held for nobody" for name in _held_in_vain(testbed)]
    for each in testbed.objects(PLURAL):
        testbed.cluster.admin.delete(PLURAL, NAMESPACE, each["metadata"]["name"])
    await testbed.sleep(NOTICED)
    await checks.clear_away()
    _look_for_rests(testbed, verdict)
    await checks.remove_reservations()
    if claims := [each["metadata"]["name"] for each in testbed.objects("resourceclaims")]:
        verdict.leaks.append(f"claims without a ClaimReservation: {claims[:5]}")
    await testbed.stop_all()


async def _all_run(testbed: Testbed, groups: GroupController, verdict: RunVerdict) -> None:
    """Wait for all pods, those of LeaderWorkerSets included."""

    def missing() -> list[str]:
        return [*missing_pods(testbed.objects), *groups.unfinished()]

    if not await testbed.until(lambda: not missing(), testbed.patience.release, step=2.0):
        verdict.stuck += missing()


async def _all_come_back(testbed: Testbed, groups: GroupController, verdict: RunVerdict) -> None:
    """Delete all pods once, and let new ones come only after an idle timeout, since their ordinals
    are not idle. The judge sees whether each comes back to its device."""
    testbed.cluster.pause(STATEFULSETS)
    for pod in testbed.objects("pods"):
        if pod["status"].get("phase") == "Running":
            testbed.cluster.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    await testbed.sleep(NOTICED)
    testbed.cluster.resume(STATEFULSETS)
    await _all_run(testbed, groups, verdict)


def _give_back(testbed: Testbed) -> None:
    """Let the users of deleted workloads give up the devices that they asked to keep."""
    there = {
        each["metadata"]["uid"]: each["metadata"]["name"]
        for plural in KINDS
        for each in testbed.objects(plural)
    }
    for plural in KINDS:
        for each in testbed.objects(plural):
            if each["metadata"].get("ownerReferences"):
                continue
            notes = {"claimctl.io/retention-policy": "WhileRunning"}
            notes["claimctl.io/idle-timeout-seconds"] = "1"
            name, body = each["metadata"]["name"], {"metadata": {"annotations": notes}}
            testbed.cluster.admin.patch(plural, NAMESPACE, name, body)
    for reservation in testbed.objects("claimreservations"):
        if reservation["spec"]["workloadRef"]["name"] not in there.values():
            name = reservation["metadata"]["name"]
            testbed.cluster.admin.delete("claimreservations", NAMESPACE, name)


def _look_for_rests(testbed: Testbed, verdict: RunVerdict) -> None:
    """What is left after all workloads are gone: only what their last settings ask to keep."""
    judge = _judged(testbed)
    kept: dict[str, Any] = {
        reservation["spec"]["resourceClaimName"]: reservation
        for reservation in testbed.objects("claimreservations")
    }
    names = {claim["metadata"]["name"] for claim in testbed.objects("resourceclaims")}
    for name in sorted(names | kept.keys()):
        place = StickyPlace.of(name)
        if place is None or not judge.may_stay(place):
            verdict.leaks.append(f"{name} is left, and no pod will name it")


def _held_in_vain(testbed: Testbed) -> list[str]:
    return _judged(testbed).held_in_vain(NAMESPACE)


def _judged(testbed: Testbed, *, faltering: bool = False) -> StickyJudge:
    young = FALTERING if faltering else YOUNG
    deletions = [it for transport in testbed.transports() for it in transport.deletions]
    judge = StickyJudge({CONTROLLER_USER}, young, deletions)
    judge.world.read(testbed.cluster.history())
    return judge


def _judge(testbed: Testbed, done: RunVerdict, *, faltering: bool) -> None:
    judge(testbed, done)
    sticky = _judged(testbed, faltering=faltering)
    done.violations += sticky.violations
    done.counts += sticky.counts
    done.counts["requests of claimctl"] += done.requests
    done.counts["writes of claimctl"] += done.writes


def parsed(arguments: Sequence[str]) -> Namespace:
    """The flags; those of the size have the names of its fields."""
    parser = Parser("labs sticky", __doc__)
    parser.add_argument("--sets", type=number(), default=8, help="StatefulSets (%(default)s)")
    parser.add_argument("--ordinals", type=number(1), default=6, help="of each (%(default)s)")
    parser.add_argument("--jobs", type=number(), default=2, help="Indexed Jobs (%(default)s)")
    parser.add_argument("--lws", type=number(), default=2, help="LeaderWorkerSets (%(default)s)")
    parser.add_argument("--groups", type=number(1), default=3, help="of each (%(default)s)")
    parser.add_argument("--members", type=number(1), default=3, help="of a group (%(default)s)")
    parser.add_argument("--actions", type=number(1), default=80, help="of users (%(default)s)")
    parser.add_argument("--nodes", type=number(1), default=4, help="nodes (%(default)s)")
    add_seeds(parser, 4)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    given = parsed(arguments)
    size = StickySize(**{each.name: getattr(given, each.name) for each in fields(StickySize)})
    tally = spread(partial(play, size=size), seeds(given), given.workers, batch=1)
    return report(tally, ("runs", f"{tally.runs} from SEED={given.seed}"))
