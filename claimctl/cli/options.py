"""Options that several commands have, by the names and letters that kubectl users know."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Structured(StrEnum):
    """For commands whose table has no wide form and whose rows have no name."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Data(StrEnum):
    JSON = "json"
    YAML = "yaml"


_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def object_name(value: str) -> str:
    """A name as the API server takes it (RFC 1123 subdomain, at most 253 characters)."""
    if len(value) > 253 or not _SUBDOMAIN.fullmatch(value):
        raise typer.BadParameter(
            f"{value!r} is not a DNS name: lower-case letters, digits, '-' and '.' are expected"
        )
    return value


def namespace_name(value: str | None) -> str | None:
    """A namespace as the API server takes it (RFC 1123 label, at most 63 characters)."""
    if value is not None and (len(value) > 63 or not _LABEL.fullmatch(value)):
        raise typer.BadParameter(
            f"{value!r} is not a DNS label: lower-case letters, digits and '-' are expected"
        )
    return value


ClaimArgument = Annotated[
    str, typer.Argument(metavar="CLAIM", help="The claim's name.", callback=object_name)
]
KubeconfigOption = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="The kubeconfig; else $KUBECONFIG, ~/.kube/config."
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="The context of the kubeconfig to use."),
]
AsOption = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="The user to impersonate."),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The namespace; else the context's.",
        callback=namespace_name,
    ),
]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Look in all namespaces.")
]
SelectorOption = Annotated[
    str,
    typer.Option("--selector", "-l", metavar="LABELS", help="A label selector, like app=train."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]
StructuredOption = Annotated[Structured, typer.Option("--output", "-o", help="How to print.")]
DataOption = Annotated[Data | None, typer.Option("--output", "-o", help="How to print.")]
