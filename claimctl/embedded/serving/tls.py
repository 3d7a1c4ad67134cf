"""A certificate for 127.0.0.1: kubectl sends tokens over TLS only."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Identity:
    """``certificate`` is PEM, for clients to trust."""

    certificate: str
    context: ssl.SSLContext


def loopback_identity() -> Identity:
    """A new certificate from a new authority; the keys are on disk for a moment at most."""
    # imported here: the libraries below it take 0.1 s, and only a cluster with RBAC serves TLS
    from trustme import CA

    authority = CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*NAMES).configure_cert(context)
    return Identity(authority.cert_pem.bytes().decode("ascii"), context)
