"""Options that several commands share, with kubectl's names and letters."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from claimctl.cli.errors import UsageError
from claimctl.cli.objects import CLAIM, parse

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def claim_name(value: str) -> str:
    """The name of a claim, given as NAME or as KIND/NAME, which `-o name` prints."""
    return parse(value, CLAIM, (CLAIM,))[1]


def claim_names(values: list[str] | None) -> list[str] | None:
    return [claim_name(value) for value in values] if values is not None else None


def namespace_name(value: str | None) -> str | None:
    """Check a namespace by the API server's rule (RFC 1123 label, at most 63 characters)."""
    if value is not None and (len(value) > 63 or not _LABEL.fullmatch(value)):
        raise typer.BadParameter(
            f"{value!r} is not a DNS label: lower-case letters, digits and '-' are expected"
        )
    return value


def namespace_names(values: list[str] | None) -> list[str] | None:
    for value in values or ():
        namespace_name(value)
    return values


def place_of(namespace: str | None, *, all_namespaces: bool) -> str | None:
    """The namespace of a command: "" for all, None for that of the context.

    Raises:
        UsageError: both flags are given.
    """
    if namespace and all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")
    return "" if all_namespaces else namespace


ClaimArgument = Annotated[
    str,
    typer.Argument(metavar="CLAIM", help="The claim: NAME or claim/NAME.", callback=claim_name),
]
KubeconfigOption = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The kubeconfig. [default: $KUBECONFIG, else ~/.kube/config]",
        hidden=True,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context in the kubeconfig. [default: the current one]",
        hidden=True,
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="User to impersonate. [default: none]", hidden=True),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The namespace. [default: that of the context]",
        callback=namespace_name,
    ),
]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Use all namespaces. [default: off]")
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector", "-l", metavar="LABELS", help="Label selector, like app=train. [default: none]"
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done; write nothing. [default: off]")
]
WatchOption = Annotated[
    bool,
    typer.Option("--watch", "-w", help="Print again after changes, until Ctrl-C. [default: off]"),
]
