"""kubectl's connection flags, for every command that talks to a cluster.

Each annotated field of ``Access`` is a flag. A command gets the flags by ``@connecting`` and a
parameter ``access: Access = DEFAULT``. ``cli.session`` hands the flags on: a new one that changes
the connection is also a field of the same name in ``claimctl.login.kubeconfig.Overrides``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.flags import flags_of, spread
from claimctl.cli.options import AsOption, ContextOption, KubeconfigOption, named

REQUEST_SECONDS = Seconds(30)
"""How long a request may take, unless the user says otherwise."""
NO_LIMIT = Seconds(0)


def _hidden(usage: str, help_: str) -> Any:
    """An option that only ``claimctl --help`` shows (``connection_flags``)."""
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
        str, _hidden("--certificate-authority FILE", "Certificates (PEM) to trust the server by.")
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
        list[str] | None,
        _hidden("--as-group GROUP", "Group to impersonate, with --as; may be repeated."),
    ] = None
    as_uid: Annotated[str, _hidden("--as-uid UID", "UID to impersonate, with --as.")] = ""
    request_timeout: Annotated[
        float,
        duration_option(
            "--request-timeout",
            "How long a request may take, with its repetitions; 0: no limit.",
            hidden=True,
        ),
    ] = REQUEST_SECONDS
    first_timeout: float = 0.0
    """The limit until the server has answered for the first time, for a command whose
    ``request_timeout`` is 0. It has no flag."""

    def __post_init__(self) -> None:
        """Raise UsageError for flags that do not go together, or a file that cannot be read."""
        for flag, value in (("--as-group", self.as_groups), ("--as-uid", self.as_uid)):
            if value and not self.as_user:
                raise UsageError(f"{flag} needs --as, the user to impersonate")
        file = self.certificate_authority
        if file and self.insecure_skip_tls_verify:
            raise UsageError("--certificate-authority: leave out --insecure-skip-tls-verify")
        if file and not Path(file).is_file():
            raise UsageError(f"--certificate-authority: there is no file {file}")


DEFAULT = Access()
"""Stands in the signature of a command. The decorators below replace it by what the user gives."""


def connection_flags() -> list[tuple[str, str]]:
    """The flags of every command that asks a cluster, and their help, for ``claimctl --help``."""
    options = [get_args(hint)[1] for hint in flags_of(Access).values()]
    # in an annotation, typer keeps the first name of an option as its default
    return [
        (f"{', '.join([*it.param_decls, it.default])} {it.metavar or ''}".strip(), it.help)
        for it in options
    ]


def connecting(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the connection flags. Its parameter ``access`` gets their values."""
    return spread(function)


def connecting_patiently(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """The same for a command that has much to read and to write.

    A server that is throttled or overloaded may take long to answer one of its requests. The
    command goes on then, as long as the server has answered at first.
    """
    return spread(function, request_timeout=NO_LIMIT, first_timeout=REQUEST_SECONDS)
