"""Read from a kubeconfig, or from a pod's ServiceAccount, how to connect to an API server.

The official client is used only for plugins and providers: to import it takes 0.3 s and 25 MB.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from claimctl.kube.auth import (
    Auth,
    Credentials,
    StaticAuth,
    TokenFileAuth,
    exec_auth,
    provider_auth,
)
from claimctl.kube.errors import ConfigError
from claimctl.kube.kubeconfig import Entry, Overrides, Selection, locate, select
from claimctl.kube.tls import Pem, Tls, pem

_POD_HOST, _POD_PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAMESPACE_FILE = f"{_SERVICE_ACCOUNT}/namespace"
_TOKEN_FILE = f"{_SERVICE_ACCOUNT}/token"
_AUTHORITY_FILE = f"{_SERVICE_ACCOUNT}/ca.crt"


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one API server as one user.

    Attributes:
        server: the URL, without a slash at its end; it may have a path.
        namespace: the default of ``-n``.
        context: the name of the kubeconfig's context; empty in a pod.
        source: where the connection was read from, for messages.
        headers: headers of every request (impersonation).
        server_name: the name in the server's certificate; empty means the host of ``server``.
        proxy: the URL of an HTTP proxy; empty means the proxy of the environment.
    """

    server: str
    auth: Auth = field(default_factory=StaticAuth)
    tls: Tls = field(default_factory=Tls)
    namespace: str = "default"
    context: str = ""
    source: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    server_name: str = ""
    proxy: str = ""


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
    if not paths and context is None and os.environ.get(_POD_HOST):
        return _in_cluster(as_user, flags)
    if not paths:
        raise ConfigError(
            "no kubeconfig: KUBECONFIG is not set, ~/.kube/config does not exist and this is not"
            " a pod; name one with --kubeconfig"
        )
    return _from_selection(select(paths, context, flags), as_user, flags)


def _from_selection(chosen: Selection, as_user: str | None, flags: Overrides) -> Connection:
    tls = Tls(
        authority=pem(chosen.cluster, "certificate-authority"),
        certificate=pem(chosen.user, "client-certificate"),
        key=pem(chosen.user, "client-key"),
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
    server, proxy = cluster.text("server"), cluster.text("proxy-url")
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
        groups = (("Impersonate-Group", group) for group in flags.as_groups)
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


def _in_cluster(as_user: str | None, flags: Overrides) -> Connection:
    host, port = os.environ[_POD_HOST], os.environ.get(_POD_PORT, "")
    if not port:
        raise ConfigError(f"in-cluster: {_POD_PORT} is not set, although {_POD_HOST} is")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        Path(_TOKEN_FILE).read_bytes()
        authority = Path(_AUTHORITY_FILE).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"in-cluster: {error.filename}: {error.strerror}. Is the service account token mounted?"
        ) from error
    namespace = "default"
    with suppress(OSError):
        namespace = Path(_NAMESPACE_FILE).read_text(encoding="utf-8").strip() or namespace
    tls = Tls(authority=Pem(authority, f"in-cluster: {_AUTHORITY_FILE}"))
    tls.context()
    return Connection(
        server=server,
        auth=TokenFileAuth(_TOKEN_FILE, "in-cluster"),
        tls=tls,
        namespace=namespace,
        source="in-cluster",
        headers=_impersonation(Entry("in-cluster"), as_user, flags),
    )
