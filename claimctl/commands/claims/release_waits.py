"""What a release waits for: until when, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from claimctl.cli.documents import utc
from claimctl.commands.claims.explanation import Explanation
from claimctl.commands.claims.meanings import MEANINGS, RELEASE_WAITS
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.text import duration


def until(explanation: Explanation, blocker: Blocker) -> datetime | None:
    """When time will have ended the blocker, by the clock of the controller that wrote the status.

    None if no status has a time. Then the controller counts from what it saw first, and that is
    not known.
    """
    releases = (reservation.status.release for reservation in explanation.view.reservations)
    fenced = any(release is not None and release.step == ReleaseStep.FENCED for release in releases)
    on_record = blocker.reason is Reason.FORCE_DELETED_PODS or (
        blocker.reason is Reason.PODS_MAY_BE_BOUND and fenced
    )
    if blocker.after is None or not on_record:
        return None
    return explanation.assessment.snapshot.now + timedelta(seconds=blocker.after)


def words_of_wait(
    reason: str, after: float | None, end: str | None, watched_since: str | None
) -> str:
    """Until when a release waits for a blocker; '' if time does not end it.

    Args:
        watched_since: when the controller that acts began to lead, if it counts from then.
    """
    if after is None:
        return ""
    if end is not None:
        left = f"until {end} by the controller's clock, {duration(after)} left"
        if watched_since is None:
            return left
        return f"{left}: it began to lead at {watched_since}, and counts from then at the latest"
    if reason == Reason.PODS_MAY_BE_BOUND:
        return (
            f"at most {after:.0f} s from the controller's first sight of the claim closed "
            "to them, by its own clock; explain cannot know when that was"
        )
    return ""


def waits_for(explanation: Explanation) -> tuple[str, ...]:
    """What the release that is under way waits for, each with its end."""
    if explanation.release is None:
        return ()
    since = utc(explanation.watched_since)
    lines = []
    for blocker in explanation.obstacles:
        end = utc(until(explanation, blocker))
        left = words_of_wait(blocker.reason, blocker.after, end, since)
        lines.append(f"{blocker.message}{f' ({left})' if left else ''}")
    return tuple(lines)


def release_steps(explanation: Explanation) -> Iterator[str]:
    """What to do about each blocker of a release that is under way."""
    namespace, snapshot = explanation.view.namespace, explanation.assessment.snapshot
    release = f"claimctl release {explanation.view.name} -n {namespace}"
    for reason in dict.fromkeys(blocker.reason for blocker in explanation.obstacles):
        if reason is Reason.FORCE_DELETED_PODS:
            vanished = [ghost.pod for ghost in snapshot.ghosts]
            ghosts = [(pod.name, pod.node_name or "its node") for pod in vanished]
            for node in dict.fromkeys(node for _, node in ghosts):
                names = ", ".join(name for name, where in ghosts if where == node)
                yield (
                    f"Wait until the kubelet of {node} has ended {names}, and its driver has "
                    "unprepared the devices."
                )
            for node in sorted({pod.node_name for pod in vanished if pod.node_name}):
                yield f"If node {node} is off for good, say so: {release} --node-is-off {node}"
        elif reason is Reason.PODS_MAY_BE_BOUND:
            pods = sorted(pod.metadata.name for pod in snapshot.consumers.pending.values())
            command = f"kubectl -n {namespace} delete pod {' '.join(pods)}"
            yield f"Wait: it ends by itself. Or delete the pods: {command}"
        elif (meaning := MEANINGS[reason]).topic == RELEASE_WAITS and meaning.advice:
            yield meaning.advice
