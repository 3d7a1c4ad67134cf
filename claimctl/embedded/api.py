"""The face of the core: the verbs for HTTP (``Api``) and for components (``ApiFor``)."""

from claimctl.embedded.core import Api
from claimctl.embedded.local import ApiFor, ConnectionLost, Subscription
from claimctl.embedded.requests import Actor, DeleteOptions, ListOptions, WriteOptions

__all__ = [
    "Actor",
    "Api",
    "ApiFor",
    "ConnectionLost",
    "DeleteOptions",
    "ListOptions",
    "Subscription",
    "WriteOptions",
]
