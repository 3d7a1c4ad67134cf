"""The certificates of this process: an authority, the servers' one, and the administrator's."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from kube_in_process.auth.authn import CREDENTIAL
from kube_in_process.http.handler import ADMINISTRATOR
from kube_in_process.kinds.authorization import AUTHENTICATED
from kube_in_process.serving.kubeconfig import Access
from kube_in_process.storage.requests import MASTERS, Actor

NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Identity:
    """What servers and the administrator show to each other, in PEM where it is text."""

    authority: str
    """The certificate of the authority, for clients and servers to trust."""
    certificate: str
    """The certificate of the administrator, with its key."""
    key: str
    context: ssl.SSLContext
    """Of the servers: a client may show a certificate of the authority."""


@lru_cache(maxsize=1)
def loopback_identity() -> Identity:
    """The same for all clusters of this process, because keys take time to make.

    Nothing is kept on disk but what a kubeconfig has.
    """
    # imported here: the libraries below it take 0.1 s, and only a cluster with RBAC serves TLS
    from trustme import CA

    authority = CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*NAMES).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    user = authority.issue_cert(NAMES[1], common_name=ADMINISTRATOR.user, organization_name=MASTERS)
    return Identity(
        authority=authority.cert_pem.bytes().decode("ascii"),
        certificate=user.cert_chain_pems[0].bytes().decode("ascii"),
        key=user.private_key_pem.bytes().decode("ascii"),
        context=context,
    )


def user_of(certificate: Mapping[str, Any], encoded: bytes) -> Actor:
    """The user of a client's certificate: its common name, and its organizations as groups.

    Args:
        certificate: as ``ssl.SSLSocket.getpeercert`` returns it.
        encoded: the same in DER.
    """
    fields = [field for name in certificate["subject"] for field in name]
    [user] = [text for name, text in fields if name == "commonName"]
    groups = [text for name, text in fields if name == "organizationName"]
    digest = f"X509SHA256={sha256(encoded).hexdigest()}"
    return Actor(user, (*groups, AUTHENTICATED), extra=((CREDENTIAL, (digest,)),))


def client_context(access: Access) -> ssl.SSLContext:
    """How a client trusts a server, and shows who it is."""
    context = ssl.create_default_context(cadata=access.certificate or None)
    if access.client_certificate:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            # the ssl module reads certificates from files only
            file.write(access.client_certificate + access.client_key)
            file.flush()
            context.load_cert_chain(file.name)
    return context
