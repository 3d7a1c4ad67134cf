"""The part of ``make differential`` that plays stories of user actions on both clusters."""

from __future__ import annotations

import asyncio

from judges.differential.actions.runs import Session
from judges.differential.actions.servers import real_servers
from judges.differential.outcome import DifferentialFinding, PartOutcome, Run

_SERVERS_SECONDS = 20.0
"""Seconds for starting and stopping the servers."""


def compare(run: Run) -> PartOutcome:
    """Play stories until the time is over. A difference counts if it comes again.

    Raises:
        CannotStart: a server of the real control plane does not start.
    """
    with real_servers(run.programs, pod_groups=run.pod_groups) as plane:
        session = Session(
            (run.programs.version, run.pod_groups),
            plane.files.kubeconfig(),
            run.seed,
            run.seconds - _SERVERS_SECONDS,
            shrinks=True,
        )
        asyncio.run(session.run())
    return _outcome(session)


def _outcome(session: Session) -> PartOutcome:
    results = session.results
    outcome = PartOutcome("actions", "action sequences", compared=len(results))
    for result in results:
        for difference in result.differences:
            outcome.note(DifferentialFinding(f"actions: {difference.kind}", result.shown()))
    unsteady = [str(result.number) for result in results if result.unsteady]
    if unsteady:
        texts = "did not always differ, since the real cluster did not always do the same"
        outcome.remarks.append(f"{len(unsteady)} stories {texts}: {', '.join(unsteady)}")
    if session.undecided:
        texts = ", ".join(map(str, session.undecided))
        outcome.remarks.append(f"there was no time to play these stories again: {texts}")
    if session.disturbed:
        outcome.remarks.append(f"the machine was too slow for {session.disturbed} stories")
    return outcome
