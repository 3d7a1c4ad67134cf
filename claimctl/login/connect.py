"""Load the connection that the flags, the kubeconfig or the pod describe.

The official client is used only for plugins and providers: to import it takes 0.3 s and 25 MB.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from claimctl.kube.connection import Auth, Connection, Credentials, Pem, StaticAuth, Tls
from claimctl.kube.errors import ConfigError
from claimctl.login.in_cluster import TokenFileAuth, in_cluster
from claimctl.login.kubeconfig import Entry, Overrides, Selection, locate, select
from claimctl.login.plugins import exec_auth, provider_auth


def load_connection(
    kubeconfig: str | None = None,
    context: str | None = None,
    as_user: str | None = None,
    overrides: Overrides | None = None,
) -> Connection:
    """Load the connection from the arguments, KUBECONFIG, ~/.kube/config or the pod.

    Certificates are read and checked. No request is sent and no plugin is run.

    Raises:
        ConfigError: the configuration is not usable; one line says what is wrong, where, and what
            to do.
    """
    flags = overrides or Overrides()
    paths = locate(kubeconfig, os.environ)
    if not paths and flags.server:
        nothing = Selection("", "default", Entry("--server"), Entry("--server"), "--server")
        return _from_selection(flags.apply_to(nothing), as_user, flags)
    pod = in_cluster() if not paths and context is None else None
    if pod is not None:
        return replace(pod, headers=_impersonation(Entry("in-cluster"), as_user, flags))
    if not paths:
        raise ConfigError(
            "no kubeconfig: KUBECONFIG is not set, ~/.kube/config does not exist and this is not"
            " a pod; name one with --kubeconfig"
        )
    return _from_selection(select(paths, context, flags), as_user, flags)


def _from_selection(chosen: Selection, as_user: str | None, flags: Overrides) -> Connection:
    tls = Tls(
        authority=_pem(chosen.cluster, "certificate-authority"),
        certificate=_pem(chosen.user, "client-certificate"),
        key=_pem(chosen.user, "client-key"),
        verify=not chosen.cluster.flag("insecure-skip-tls-verify"),
    )
    if (tls.certificate is None) != (tls.key is None):
        missing = "client-key" if tls.key is None else "client-certificate"
        raise ConfigError(f"{chosen.user.where}: {missing} is missing beside its counterpart")
    _check_cluster(chosen.cluster)
    connection = Connection(
        server=chosen.cluster.text("server").rstrip("/"),
        auth=_auth(chosen),
        tls=tls,
        namespace=chosen.namespace,
        context=chosen.context,
        source=chosen.source,
        headers=_impersonation(chosen.user, as_user, flags),
        server_name=chosen.cluster.text("tls-server-name"),
        proxy=chosen.cluster.text("proxy-url"),
    )
    if connection.server.startswith("https:"):
        # raises ConfigError if a certificate cannot be used
        tls.context()
    return connection


def _auth(chosen: Selection) -> Auth:
    user = chosen.user
    if user.value.get("exec"):
        return exec_auth(user)
    if user.value.get("auth-provider"):
        return provider_auth(_document(chosen.cluster.value, user.value), user)
    authorization = _authorization(user)
    if not authorization and user.text("tokenFile"):
        return TokenFileAuth(user.text("tokenFile"), f"{user.where}: tokenFile")
    return StaticAuth(Credentials(authorization))


def _document(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig that has only this cluster and this user, as the official client reads one."""
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": dict(cluster)}],
        "users": [{"name": "it", "user": dict(user)}],
    }


def _authorization(user: Entry) -> str:
    """The Authorization header by the user's token, or else by its name and password."""
    token, name = user.text("token"), user.text("username")
    if any(char in token for char in "\r\n\0"):
        raise ConfigError(f"{user.where}: token must be a single line")
    if token:
        return f"Bearer {token}"
    if name and user.text("password"):
        pair = f"{name}:{user.text('password')}"
        return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
    return ""


def _check_cluster(cluster: Entry) -> None:
    """Raise ConfigError if the cluster's addresses cannot be used."""
    server, proxy = cluster.text("server"), cluster.text("proxy-url")
    # raises ConfigError if it is not a string
    cluster.text("tls-server-name")
    if not server:
        raise ConfigError(f"{cluster.where}: server is missing")
    if not _is_url(server):
        raise ConfigError(f"{cluster.where}: server {server!r} is not an http(s) URL")
    if proxy and not _is_url(proxy):
        raise ConfigError(f"{cluster.where}: proxy-url {proxy!r}: only http and https work")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _impersonation(
    user: Entry, as_user: str | None, flags: Overrides
) -> tuple[tuple[str, str], ...]:
    if as_user:
        uid = (("Impersonate-Uid", flags.as_uid),) if flags.as_uid else ()
        groups = (("Impersonate-Group", group) for group in flags.as_groups or ())
        return (("Impersonate-User", as_user), *uid, *groups)
    name = user.text("as")
    if not name:
        return ()
    pairs = [("Impersonate-User", name)]
    if user.text("as-uid"):
        pairs.append(("Impersonate-Uid", user.text("as-uid")))
    pairs += [("Impersonate-Group", str(group)) for group in user.value.get("as-groups") or ()]
    for key, values in (user.value.get("as-user-extra") or {}).items():
        pairs += [(f"Impersonate-Extra-{key}", str(value)) for value in values]
    return tuple(pairs)


def _pem(entry: Entry, name: str) -> Pem | None:
    """Read the field ``name``-data (base64) or else the file in the field ``name``; or None.

    Raises:
        ConfigError: the data is not base64, or the file cannot be read.
    """
    data = entry.text(f"{name}-data")
    if data:
        where = f"{entry.where}: {name}-data"
        try:
            return Pem(base64.b64decode(data, validate=True), where)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{where}: not base64") from error
    file = entry.text(name)
    if not file:
        return None
    where = f"{entry.where}: {name} {file}"
    try:
        return Pem(Path(file).read_bytes(), where)
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from error
