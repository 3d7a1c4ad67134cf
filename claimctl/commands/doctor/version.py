"""``claimctl doctor version``: the versions of the client, and of what runs in the cluster."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.formats import FactsOption, Output
from claimctl.cli.options import switch

EXAMPLES = (
    "claimctl doctor version",
    "claimctl doctor version --client",
    "claimctl doctor version -o json",
)


@connecting
def command(
    client: Annotated[bool, switch("--client", "Ask no cluster.")] = False,
    output: FactsOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Print the versions of claimctl, of the controller, the CRDs and Kubernetes.

    Without a kubeconfig only the client's version is printed.
    """
    from claimctl.commands.doctor.version_work import print_versions

    return print_versions(access, output, ask_cluster=not client)
