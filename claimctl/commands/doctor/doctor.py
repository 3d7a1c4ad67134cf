"""``claimctl doctor`` and ``claimctl version``."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from claimctl import __version__
from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.errors import ExitCode, UsageError
from claimctl.cli.formats import FactsOption, Output
from claimctl.cli.options import AllNamespacesOption, CheckedNamespaceOption, place_of, switch
from claimctl.cli.printer import print_lines

EXAMPLES = (
    "claimctl doctor",
    "claimctl doctor -n ml                   # with the rights of one namespace",
    "claimctl doctor -o json",
    "claimctl version",
    "claimctl version --client",
    "claimctl version -o json",
)


@connecting
def doctor(
    dialect: Annotated[
        str,
        typer.Option(
            "--reservation-mode",
            help="Assume this reservation mode: native, podgroup or hold; auto finds it out.",
        ),
    ] = "auto",
    namespace: CheckedNamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    output: FactsOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Check the cluster, the installation of claimctl and the claims; exit code 3 with problems.

    Every check has a line: ok, fact, waits, problem, or unknown where you may not read what it
    needs.
    """
    known = ("auto", "native", "podgroup", "hold")
    if dialect not in known:
        raise UsageError(f"--reservation-mode: {dialect!r} is not one of {', '.join(known)}")

    from claimctl.cli.session import in_session
    from claimctl.commands.doctor.doctor_work import run

    place = place_of(namespace, all_namespaces=all_namespaces)
    return in_session(access, run, namespace, dialect, place, output)


@connecting
def version(
    client: Annotated[bool, switch("--client", "Ask no cluster.")] = False,
    output: FactsOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Print the versions of claimctl, of the controller, the CRDs and Kubernetes.

    Without a kubeconfig only the client's version is printed.
    """
    this = f"claimctl {__version__} (Python {platform.python_version()})"
    if client and output.for_people:
        print_lines(this)
        return ExitCode.OK

    from claimctl.commands.doctor.version_work import print_versions

    return print_versions(access, output, this, ask_cluster=not client)
