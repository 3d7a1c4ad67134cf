"""``claimctl version``: the versions of the client, and of what runs in the cluster."""

from __future__ import annotations

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode, one_line
from claimctl.cli.formats import Output
from claimctl.cli.output import print_text
from claimctl.cli.printer import say
from claimctl.cli.session import in_session
from claimctl.commands.doctor.documents import version_of
from claimctl.commands.doctor.versions import Versions, versions
from claimctl.kube.errors import ConfigError, KubeError
from claimctl.text import fact


def print_versions(access: Access, output: Output, this: str, *, ask_cluster: bool) -> int:
    """Print the versions; ``this`` is that of the client. The exit code."""
    server, problem, code = None, "", ExitCode.OK
    if ask_cluster:
        try:
            server = in_session(access, lambda session: versions(session.client, session.clock))
        except ConfigError as error:
            problem = one_line(str(error))
        except KubeError as error:
            problem, code = one_line(str(error)), ExitCode.FAILED
    print_text(output, lines(this, server), version_of(server))
    if problem:
        say(f"{'error' if code else 'no server'}: {problem}")
    return code


def lines(this: str, server: Versions | None) -> list[str]:
    if server is None:
        return [this]
    there = server.there
    (major, minor), controller = there.kubernetes, there.account
    shown = "no Deployment that you may read has the controller's labels"
    if controller is not None:
        ready = f"{controller.ready} of {controller.wanted} pods ready"
        shown = f"{', '.join(controller.images)} ({ready})"
    crds = ", ".join(f"claimctl.io/{version}" for version in server.crds) or "not installed"
    release = f", of claimctl {server.crds_release}" if server.crds_release else ""
    claims = ", ".join(there.served.claims) or "not served"
    facts = [
        ("Client", this),
        ("Kubernetes", f"{major}.{minor}, resource.k8s.io {claims}"),
        ("CRDs", f"{crds}{release}"),
        ("Controller", shown),
        ("Lease", there.election.message),
        ("Mode", server.dialect or "not recorded; see claimctl doctor"),
        ("Skew", server.skew[1]),
    ]
    return [fact(title, value) for title, value in facts]
