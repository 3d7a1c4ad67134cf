"""A certificate for 127.0.0.1, because kubectl sends tokens over TLS only."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate (PEM, for clients to trust), and the server's TLS context."""

    certificate: str
    context: ssl.SSLContext


def loopback_identity() -> Identity:
    """A new certificate of a new authority. The keys are on disk only for a moment."""
    # imported here: the libraries below it take 0.1 s, and only a cluster with RBAC serves TLS
    from trustme import CA

    authority = CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*NAMES).configure_cert(context)
    return Identity(authority.cert_pem.bytes().decode("ascii"), context)
