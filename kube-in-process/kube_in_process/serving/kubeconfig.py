"""A kubeconfig for the embedded cluster."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

NAME = "embedded"


@dataclass(frozen=True, slots=True)
class Access:
    """The access to a server. ``token`` and ``certificate`` (PEM) may be empty."""

    url: str
    token: str = ""
    certificate: str = ""


def kubeconfig(access: Access) -> str:
    """The text of a kubeconfig with one cluster, one user and one context."""
    cluster = {"server": access.url}
    if access.certificate:
        encoded = base64.b64encode(access.certificate.encode()).decode()
        cluster["certificate-authority-data"] = encoded
    user = {"token": access.token} if access.token else {}
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
    certificate = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
    return Access(cluster["server"], user.get("token", ""), certificate)


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
