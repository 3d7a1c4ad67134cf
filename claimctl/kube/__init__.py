"""The client side of a Kubernetes API server: requests, watches, caches, queues and leases.

The names here are the package's public interface. Each module is imported at first use, so that a
command that needs no server imports neither aiohttp nor the official client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claimctl.kube.client import Client
    from claimctl.kube.clock import LoopClock
    from claimctl.kube.codec import Listing
    from claimctl.kube.connection import Connection, load_connection
    from claimctl.kube.events import EventLimits, EventRecorder
    from claimctl.kube.informer import Change, Informer
    from claimctl.kube.leases import LeaderElection, LeaderElectionSettings, LeadershipLost
    from claimctl.kube.queue import QueueRunner, RetryLimiter, WorkQueue
    from claimctl.kube.retry import Backoff
    from claimctl.kube.transport import HttpTransport
    from claimctl.kube.watch import WatchEvent

_HOMES = {
    "Backoff": "retry",
    "Change": "informer",
    "Client": "client",
    "Connection": "connection",
    "EventLimits": "events",
    "EventRecorder": "events",
    "HttpTransport": "transport",
    "Informer": "informer",
    "LeaderElection": "leases",
    "LeaderElectionSettings": "leases",
    "LeadershipLost": "leases",
    "Listing": "codec",
    "LoopClock": "clock",
    "QueueRunner": "queue",
    "RetryLimiter": "queue",
    "WatchEvent": "watch",
    "WorkQueue": "queue",
    "load_connection": "connection",
}

__all__ = [
    "Backoff",
    "Change",
    "Client",
    "Connection",
    "EventLimits",
    "EventRecorder",
    "HttpTransport",
    "Informer",
    "LeaderElection",
    "LeaderElectionSettings",
    "LeadershipLost",
    "Listing",
    "LoopClock",
    "QueueRunner",
    "RetryLimiter",
    "WatchEvent",
    "WorkQueue",
    "load_connection",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
