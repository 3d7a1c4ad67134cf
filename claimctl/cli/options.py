"""Options that several commands have, by the names and letters that kubectl users know."""

from __future__ import annotations

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
    typer.Option("--namespace", "-n", metavar="NAME", help="The namespace; else the context's."),
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
