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

Etcd may be restored from a backup. A checkpoint comes back with it, pods run that no object tells
of, and the API server refuses watches from before its own start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from labs.model.dialects import ModelDialect
from labs.model.judge import Judge
from labs.model.server import Bounds, overtaken
from labs.model.state import ON_NODE, ModelPod, ModelProcess, There, World
from labs.model.views import gapped, restarted, see_claim, see_reservation, watch_pods

FAR = 1_000_000
"""More versions than any process is behind."""


def steps(world: World, process: ModelProcess, judge: Judge) -> Iterator[tuple[str, World]]:
    """The version of now may become the checkpoint; or the one that was picked is noted."""
    if not world.left.crashes or not process.synced:
        return
    if world.mark is None or world.marked:
        yield "may list everything at this version", world._replace(mark=listing(world), marked=0)
    elif may_note(world.mark, process, judge):
        yield "notes the checkpoint", world._replace(marked=1)


def listing(world: World) -> ModelProcess:
    """A process that lists everything at the checkpoint, if this is its version."""
    begun = restarted(world, two_step=False)
    return begun._replace(blind=0, known=begun.blind, whole=1) if is_reserved(world) else begun


def is_reserved(world: World) -> bool:
    """Whether the checkpoint of this version tells the claim's history."""
    return world.reservation.there != There.GONE


def may_note(mark: ModelProcess, process: ModelProcess, judge: Judge) -> bool:
    """Whether the process, as the leader, notes the version of ``mark``."""
    if not has_reached(mark, process):
        return False
    if process.reservation.there == There.GONE or not process.claim.allocated:
        return True
    reported = process.reservation == mark.reservation
    return judge.all_on_record(process, mark.reservation.ghosts if reported else ())


def has_reached(mark: ModelProcess, process: ModelProcess) -> bool:
    """Whether all caches of the process are as late as ``mark``.

    A reservation that is gone since is not enough: nobody looks at its claim any more.
    """
    gone = process.reservation.there == There.GONE != mark.reservation.there
    reported = process.fresh or process.reservation == mark.reservation
    pods = all(mine >= its for mine, its in zip(process.pods, mark.pods, strict=True))
    return bool(process.age <= mark.age and pods and reported and not gone)


def behind(mark: ModelProcess, after: World, dialect: ModelDialect, bounds: Bounds) -> ModelProcess:
    """The same when something was written: it has not seen that."""
    later = overtaken(mark, after, dialect, replace(bounds, cache_lag=FAR))
    return later._replace(age=min(later.age, bounds.cache_lag + 1))


def begun(world: World, dialect: ModelDialect) -> Iterator[tuple[str, ModelProcess]]:
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


def backed_up(world: World) -> World:
    """The world with a backup of itself."""
    return world._replace(backup=world._replace(mark=listing(world)))


def restored(world: World) -> World | None:
    """The world after a restore of etcd; None if there is no backup."""
    then = world.backup
    if then is None:
        return None
    pods = tuple(_lost(now, was) for now, was in zip(world.pods, then.pods, strict=True))
    left = world.left._replace(crashes=world.left.crashes - 1, unlucky=1)
    return then._replace(pods=pods, left=left)


def begun_anew(world: World, dialect: ModelDialect) -> Iterator[tuple[str, ModelProcess]]:
    """What a process may know that begins after a restore."""
    yield "starts again", restarted(world, two_step=False)
    assert world.mark is not None
    listed = refused(world.mark, world, dialect, claims=True)
    yield "begins at the checkpoint", current(listed, world, dialect)


def _lost(now: int, was: int) -> int:
    """A pod after a restore: its object as it was, its containers as they are now."""
    lost = was == ModelPod.NONE and now in (*ON_NODE, ModelPod.GHOST)
    return ModelPod.GHOST if lost else was


def current(process: ModelProcess, world: World, dialect: ModelDialect) -> ModelProcess:
    """The same when its watches have shown everything up to now."""
    if process.age:
        process = see_claim(process, world.claim, dialect)
    process = see_reservation(watch_pods(process, world), world.reservation)
    return process._replace(workload=world.workload, group=world.group)


def refused(
    mark: ModelProcess, world: World, dialect: ModelDialect, *, claims: bool
) -> ModelProcess:
    """The same after the API server has refused watches from the checkpoint on."""
    listed = gapped(mark, world, dialect, claims=claims)
    return forgotten(listed) if claims else listed


def forgotten(process: ModelProcess) -> ModelProcess:
    """The same without what the checkpoint told: an API server that was started since refuses the
    watch of claims, and etcd may have been restored."""
    allocated = process.claim.allocated
    return process._replace(blind=int(allocated), known=0, whole=int(not allocated))


def spent(world: World) -> World:
    """The world without what no process can use any more."""
    return world if world.left.crashes else world._replace(mark=None, marked=0, backup=None)
