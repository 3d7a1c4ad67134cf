"""A kubeconfig for the embedded cluster."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

NAME = "embedded"


@dataclass(frozen=True, slots=True)
class Access:
    """The access to a server. All but the URL may be empty.

    Attributes:
        certificate: the authority that the server's certificate is of, in PEM.
        client_certificate, client_key: what the client shows of itself, in PEM.
    """

    url: str
    token: str = field(default="", repr=False)
    certificate: str = ""
    client_certificate: str = ""
    client_key: str = field(default="", repr=False)


def kubeconfig(access: Access) -> str:
    """The text of a kubeconfig with one cluster, one user and one context."""
    cluster = {"server": access.url}
    if access.certificate:
        cluster["certificate-authority-data"] = _encoded(access.certificate)
    user = {"token": access.token} if access.token else {}
    if access.client_certificate:
        user["client-certificate-data"] = _encoded(access.client_certificate)
        user["client-key-data"] = _encoded(access.client_key)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [
            {"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}
        ],
        "current-context": NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)


def read_kubeconfig(path: Path) -> Access:
    """The access that ``write_kubeconfig`` wrote."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    return Access(
        cluster["server"],
        user.get("token", ""),
        _decoded(cluster.get("certificate-authority-data", "")),
        _decoded(user.get("client-certificate-data", "")),
        _decoded(user.get("client-key-data", "")),
    )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write a file of its own for one cluster, in one step, readable for its owner only.

    Raises OSError if the directory is not writable.
    """
    replace_file(path, kubeconfig(access), 0o600)


def replace_file(path: Path, text: str, mode: int) -> None:
    """Write a file in one step. Raises OSError if the directory is not writable."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def check_writable(path: Path) -> None:
    """Check before the start that ``path`` can be written. Raises OSError if not."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    os.unlink(name)
