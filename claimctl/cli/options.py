"""Options that several commands share, with kubectl's names and letters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from claimctl.cli.errors import UsageError
from claimctl.cli.objects import CLAIM, object_name, parse

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


def driver_names(values: list[str] | None) -> list[str] | None:
    """Check names of DRA drivers: they are DNS names."""
    return [object_name(value) for value in values] if values is not None else None


def label_selector(text: str) -> str:
    """Check a label selector as the API server reads it."""
    if not text.strip():
        return ""
    # --help is fast because it does not load msgspec, which this module needs
    from claimctl.label_selectors import parse as parse_selector

    try:
        parse_selector(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text.strip()


def place_of(namespace: str | None, *, all_namespaces: bool) -> str | None:
    """The namespace of a command: "" for all, None for that of the context. UsageError if both
    flags are given."""
    if namespace and all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")
    return "" if all_namespaces else namespace


def switch(flags: str, help_: str) -> Any:
    """An option that is off until it is given. Its names are words of ``flags``."""
    return typer.Option(*flags.split(), help=f"{help_} [default: off]")


def named(
    usage: str,
    help_: str,
    default: str = "",
    *,
    check: Callable[..., object] | None = None,
    hidden: bool = False,
) -> Any:
    """An option with a value, or one that may be repeated.

    Args:
        usage: its names and the word for its value, such as ``--namespace -n NAME``.
        default: what happens without the option, where its value does not say that.
        check: gets the value, and returns it; BadParameter if it cannot be used.
    """
    *flags, metavar = usage.split()
    text = f"{help_} [default: {default}]" if default else help_
    return typer.Option(*flags, metavar=metavar, help=text, callback=check, hidden=hidden)


ClaimArgument = Annotated[
    str, typer.Argument(metavar="CLAIM", help="The claim: NAME or claim/NAME.", callback=claim_name)
]
KubeconfigOption = Annotated[
    str | None,
    named("--kubeconfig FILE", "The kubeconfig.", "$KUBECONFIG, else ~/.kube/config", hidden=True),
]
ContextOption = Annotated[
    str | None,
    named("--context NAME", "Context in the kubeconfig.", "the current one", hidden=True),
]
AsOption = Annotated[str | None, named("--as USER", "User to impersonate.", "none", hidden=True)]
NamespaceOption = Annotated[
    str | None,
    named("--namespace -n NAME", "The namespace.", "that of the context", check=namespace_name),
]
CheckedNamespaceOption = Annotated[
    str | None,
    named("--namespace -n NAME", "The namespace.", "all that you may read", check=namespace_name),
]
AllNamespacesOption = Annotated[bool, switch("--all-namespaces -A", "Use all namespaces.")]
SelectorOption = Annotated[
    str,
    named("--selector -l LABELS", "Label selector, like app=train.", "none", check=label_selector),
]
DryRunOption = Annotated[bool, switch("--dry-run", "Print what would be done; write nothing.")]
WatchOption = Annotated[bool, switch("--watch -w", "Print again after changes, until Ctrl-C.")]
