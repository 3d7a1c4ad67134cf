"""The checkpoint in the Lease: when a leader notes it, and where a process begins.

The adversary picks a version of the cluster. A leader may note it as the checkpoint as soon as its
own caches have reached it and everything is on record at it. When a process is killed, it begins
anew in one of these ways:

- It lists everything as it is now.
- It lists everything as it was at the checkpoint, and its watches bring what came after it.
- The API server refuses the watch of the pods from there on, or that of the claim, too. Then it
  lists these again as they are now.

It decides nothing before its watches have shown it everything up to its start. The world keeps what
the second one would know: a process that has seen nothing since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.dialects import Dialect
from tests.model.judge import Judge
from tests.model.server import Bounds, overtaken
from tests.model.state import Process, There, World
from tests.model.views import gapped, restarted, see_claim, see_reservation, watch_pods

FAR = 1_000_000
"""More versions than any process is behind."""


def steps(world: World, process: Process, judge: Judge) -> Iterator[tuple[str, World]]:
    """The version of now may become the checkpoint; or the one that was picked is noted."""
    if not world.left.crashes or not process.synced:
        return
    if world.mark is None or world.marked:
        yield "may list everything at this version", world._replace(mark=listing(world), marked=0)
    elif may_note(world.mark, process, judge):
        yield "notes the checkpoint", world._replace(marked=1)


def listing(world: World) -> Process:
    """A process that lists everything at the checkpoint, if this is its version."""
    begun = restarted(world, two_step=False)
    return begun._replace(blind=0, known=begun.blind, whole=1) if is_reserved(world) else begun


def is_reserved(world: World) -> bool:
    """Whether the checkpoint of this version tells the claim's history."""
    return world.reservation.there != There.GONE


def may_note(mark: Process, process: Process, judge: Judge) -> bool:
    """Whether the process, as the leader, notes the version of ``mark``."""
    if not has_reached(mark, process):
        return False
    if process.reservation.there == There.GONE or not process.claim.allocated:
        return True
    told = process.reservation == mark.reservation
    return judge.all_on_record(process, mark.reservation.ghosts if told else ())


def has_reached(mark: Process, process: Process) -> bool:
    """Whether all caches of the process are as late as ``mark``.

    A reservation that is gone since is not enough: nobody looks at its claim any more.
    """
    gone = process.reservation.there == There.GONE != mark.reservation.there
    told = process.fresh or process.reservation == mark.reservation
    pods = all(mine >= its for mine, its in zip(process.pods, mark.pods, strict=True))
    return bool(process.age <= mark.age and pods and told and not gone)


def behind(mark: Process, after: World, dialect: Dialect, bounds: Bounds) -> Process:
    """The same when something was written: it has not seen that."""
    later = overtaken(mark, after, dialect, replace(bounds, cache_lag=FAR))
    return later._replace(age=min(later.age, bounds.cache_lag + 1))


def begun(world: World, dialect: Dialect) -> Iterator[tuple[str, Process]]:
    """What a process may know that begins at the checkpoint."""
    mark = world.mark
    if mark is None or not world.marked:
        return
    yield "begins at the checkpoint", current(mark, world, dialect)
    for claims, what in ((False, "the pods"), (True, "everything")):
        listed = refused(mark, world, dialect, claims=claims)
        yield (
            f"begins at the checkpoint and has to list {what} again",
            current(listed, world, dialect),
        )


def current(process: Process, world: World, dialect: Dialect) -> Process:
    """The same when its watches have shown everything up to now."""
    if process.age:
        process = see_claim(process, world.claim, dialect)
    process = see_reservation(watch_pods(process, world), world.reservation)
    return process._replace(workload=world.workload, group=world.group, away=world.away)


def refused(mark: Process, world: World, dialect: Dialect, *, claims: bool) -> Process:
    """The same after the API server has refused watches from the checkpoint on."""
    return gapped(mark, world, dialect, claims=claims)


def spent(world: World) -> World:
    """The world without what no process can use any more."""
    return world if world.left.crashes else world._replace(mark=None, marked=0)
