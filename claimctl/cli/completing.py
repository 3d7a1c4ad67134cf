"""Lets a shell complete names from the cluster and the kubeconfig, where a command takes them."""

from __future__ import annotations

from typing import Any

from typer._click.shell_completion import CompletionItem

METAVARS = frozenset({"CLAIM", "[CLAIM]...", "OBJECT", "[OBJECT]..."})
NAMES = frozenset({"namespace", "namespaces", "context", "cluster", "user"})


def attach(command: Any) -> None:
    """Let a command's arguments and options complete names. Connection flags are offered, too."""
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            parameter.hidden = False
        kind = parameter.metavar if parameter.metavar in METAVARS else parameter.name
        if kind in METAVARS | NAMES:
            parameter._custom_shell_complete = _completer(kind)


def _completer(kind: str) -> Any:
    def complete(context: Any, _: Any, incomplete: str) -> list[CompletionItem]:
        from claimctl.cli.cluster_names import COMPLETIONS

        return [CompletionItem(name) for name in COMPLETIONS[kind](context, incomplete)]

    return complete
