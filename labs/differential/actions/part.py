"""The part of ``make differential`` that plays stories of user actions on both clusters."""

from __future__ import annotations

import asyncio

from labs.differential.actions.runs import Session
from labs.differential.actions.servers import real_servers
from labs.differential.outcome import Finding, Outcome, Run

_SERVERS_SECONDS = 20.0
"""Seconds for starting and stopping the servers."""


def compare(run: Run) -> Outcome:
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


def _outcome(session: Session) -> Outcome:
    results = session.results
    outcome = Outcome("actions", "action sequences", compared=len(results))
    for result in results:
        for each in result.differences:
            outcome.note(Finding(f"actions: {each.kind}", result.shown()))
    unsteady = [str(each.number) for each in results if each.unsteady]
    if unsteady:
        told = "did not always differ, since the real cluster did not always do the same"
        outcome.remarks.append(f"{len(unsteady)} stories {told}: {', '.join(unsteady)}")
    if session.undecided:
        told = ", ".join(map(str, session.undecided))
        outcome.remarks.append(f"there was no time to play these stories again: {told}")
    if session.disturbed:
        outcome.remarks.append(f"the machine was too slow for {session.disturbed} stories")
    return outcome
