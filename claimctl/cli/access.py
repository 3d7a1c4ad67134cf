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


def _hidden(usage: str, help_: str) -> Any:
    return named(usage, help_, "none", hidden=True)


@dataclass(frozen=True, slots=True)
class Access:
    """The flags that select the cluster and the user, and say how long a request may take."""

    kubeconfig: KubeconfigOption = None
    context: ContextOption = None
    cluster: Annotated[
        str, _hidden("--cluster NAME", "Cluster in the kubeconfig, besides the context's.")
    ] = ""
    user: Annotated[
        str, _hidden("--user NAME", "User in the kubeconfig, besides the context's.")
    ] = ""
    server: Annotated[str, _hidden("--server -s URL", "The API server.")] = ""
    token: Annotated[str, _hidden("--token TOKEN", "Bearer token for the API server.")] = ""
    certificate_authority: Annotated[
        str,
        _hidden("--certificate-authority FILE", "Certificates (PEM) to trust the server by."),
    ] = ""
    insecure_skip_tls_verify: Annotated[
        bool,
        typer.Option(
            "--insecure-skip-tls-verify",
            help="Trust any certificate of the server. [default: off]",
            hidden=True,
        ),
    ] = False
    tls_server_name: Annotated[
        str, _hidden("--tls-server-name NAME", "The name in the server's certificate.")
    ] = ""
    as_user: AsOption = None
    as_groups: Annotated[
        tuple[str, ...],
        _hidden("--as-group GROUP", "Group to impersonate, with --as; may be repeated."),
    ] = ()
    as_uid: Annotated[str, _hidden("--as-uid UID", "UID to impersonate, with --as.")] = ""
    request_timeout: Annotated[
        float,
        named(
            "--request-timeout DURATION",
            "How long a request may take, with its repetitions; 0: no limit.",
            check=seconds,
            hidden=True,
        ),
    ] = REQUEST_SECONDS
    first_timeout: float = 0.0
    """The same without ``request_timeout``, until the server has answered for the first time."""


DEFAULT = Access()
_OPTIONS = {
    name: get_args(hint)[1]
    for name, hint in get_type_hints(Access, include_extras=True).items()
    if name != "first_timeout"
}
_TYPES: dict[str, Any] = get_type_hints(Access) | {"as_groups": list[str], "request_timeout": str}
"""The types of the flags as typer reads them."""


def connection_flags() -> list[tuple[str, str]]:
    """The flags of every command that asks a cluster, and their help, for ``claimctl --help``."""
    # typer takes the first name for the default
    return [
        (f"{', '.join([*it.param_decls, it.default])} {it.metavar or ''}".strip(), it.help)
        for it in _OPTIONS.values()
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
        inspect.Parameter(
            name, only, default=defaults[name], annotation=Annotated[_TYPES[name], option]
        )
        for name, option in _OPTIONS.items()
    ]

    def command(**given: Any) -> int | None:
        values = {name: given.pop(name) for name in _OPTIONS}
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
