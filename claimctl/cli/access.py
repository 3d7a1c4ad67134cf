"""kubectl's connection flags, for every command that talks to a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from claimctl.cli.durations import seconds
from claimctl.cli.options import AsOption, ContextOption, KubeconfigOption, named

REQUEST_SECONDS = 30.0
NO_LIMIT = "0"


def _text(usage: str, help_: str) -> Any:
    return Annotated[str, named(usage, help_, "none", hidden=True)]


@dataclass(frozen=True, slots=True)
class Access:
    """The flags that select the cluster and the user, and say how long a request may take."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    request_timeout: float = REQUEST_SECONDS
    first_timeout: float = 0.0
    """The same without ``request_timeout``, until the server has answered for the first time."""


DEFAULT = Access()
_FLAGS: dict[str, Any] = {
    "kubeconfig": KubeconfigOption,
    "context": ContextOption,
    "cluster": _text("--cluster NAME", "Cluster in the kubeconfig, besides the context's."),
    "user": _text("--user NAME", "User in the kubeconfig, besides the context's."),
    "server": _text("--server -s URL", "The API server."),
    "token": _text("--token TOKEN", "Bearer token for the API server."),
    "certificate_authority": _text(
        "--certificate-authority FILE", "Certificates (PEM) to trust the server by."
    ),
    "insecure_skip_tls_verify": Annotated[
        bool,
        typer.Option(
            "--insecure-skip-tls-verify",
            help="Trust any certificate of the server. [default: off]",
            hidden=True,
        ),
    ],
    "tls_server_name": _text("--tls-server-name NAME", "The name in the server's certificate."),
    "as_user": AsOption,
    "as_groups": Annotated[
        list[str] | None,
        named(
            "--as-group GROUP",
            "Group to impersonate, with --as; may be repeated.",
            "none",
            hidden=True,
        ),
    ],
    "as_uid": _text("--as-uid UID", "UID to impersonate, with --as."),
    "request_timeout": Annotated[
        str,
        named(
            "--request-timeout DURATION",
            "How long a request may take, with its repetitions; 0: no limit.",
            check=seconds,
            hidden=True,
        ),
    ],
}


def connection_flags() -> list[tuple[str, str]]:
    """The flags of every command that asks a cluster, and their help, for ``claimctl --help``."""
    options = [get_args(flag)[1] for flag in _FLAGS.values()]
    # typer takes the first name for the default
    return [
        (f"{', '.join([*it.param_decls, it.default])} {it.metavar or ''}".strip(), it.help)
        for it in options
    ]


def connecting(
    function: Callable[..., int | None], *, request_timeout: str = "30s"
) -> Callable[..., int | None]:
    """Give a command the connection flags. Its parameter ``access`` gets their values.

    Args:
        request_timeout: the default of the flag.
    """
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "access"
    ]
    defaults = {field.name: field.default for field in fields(Access)}
    defaults |= {"as_groups": None, "request_timeout": request_timeout}
    only = inspect.Parameter.KEYWORD_ONLY
    flags = [
        inspect.Parameter(name, only, default=defaults[name], annotation=kind)
        for name, kind in _FLAGS.items()
    ]

    def command(**given: Any) -> int | None:
        values = {name: given.pop(name) for name in _FLAGS}
        values["as_groups"] = tuple(values["as_groups"] or ())
        _check(values)
        first = REQUEST_SECONDS if request_timeout == NO_LIMIT else 0.0
        return function(**given, access=Access(**values, first_timeout=first))

    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [parameter.replace(kind=only) for parameter in own] + flags
    )
    command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in (*own, *flags)
    } | {"return": int | None}
    command.__doc__, command.__module__ = function.__doc__, function.__module__
    return command


def connecting_patiently(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """The same for a command that has much to read and to write.

    A server that is throttled or overloaded may take long to answer one of its requests. The
    command goes on then, as long as the server has answered at first.
    """
    return connecting(function, request_timeout=NO_LIMIT)


def _check(values: dict[str, Any]) -> None:
    """Raise UsageError for flags that do not go together, or a file that cannot be read."""
    from claimctl.cli.errors import UsageError

    for flag, name in (("--as-group", "as_groups"), ("--as-uid", "as_uid")):
        if values[name] and not values["as_user"]:
            raise UsageError(f"{flag} needs --as, the user to impersonate")
    file = values["certificate_authority"]
    if file and values["insecure_skip_tls_verify"]:
        raise UsageError("--certificate-authority: leave out --insecure-skip-tls-verify")
    if file and not Path(file).is_file():
        raise UsageError(f"--certificate-authority: there is no file {file}")
