"""Tasks in processes of their own."""

from __future__ import annotations

import os
import signal

from labs.mutation import forks


def _tell(tell: forks.Tell) -> None:
    tell("begun")
    tell("ended")


def _raise(tell: forks.Tell) -> None:
    tell("begun")
    raise ValueError


def _die(tell: forks.Tell) -> None:
    tell("begun")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_task_told_is_known_however_it_ended() -> None:
    tasks = {"tell": _tell, "raise": _raise, "die": _die}
    results = {ended.name: (ended.told, ended.well) for ended in forks.run(tasks.items(), 2)}
    assert results == {
        "tell": (["begun", "ended"], True),
        "raise": (["begun"], False),
        "die": (["begun"], False),
    }
