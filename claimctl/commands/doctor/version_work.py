"""``claimctl version``: the versions of the client, and of what runs in the cluster."""

from __future__ import annotations

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode, one_line
from claimctl.cli.formats import Output
from claimctl.cli.output import print_text
from claimctl.cli.printer import say
from claimctl.cli.session import in_session
from claimctl.commands.doctor.versions import ServerVersions, read_versions, version_of
from claimctl.kube.errors import ConfigError, KubeError
from claimctl.text import fact


def print_versions(access: Access, output: Output, this: str, *, ask_cluster: bool) -> int:
    """Print the versions; ``this`` is that of the client. The exit code."""
    server, problem, code = None, "", ExitCode.OK
    if ask_cluster:
        try:
            server = in_session(access, lambda it: read_versions(it.client, it.clock))
        except ConfigError as error:
            problem = one_line(str(error))
        except KubeError as error:
            problem, code = one_line(str(error)), ExitCode.FAILED
    print_text(output, lines(this, server), version_of(server))
    if problem:
        say(f"{'error' if code else 'no server'}: {problem}")
    return code


def lines(this: str, server: ServerVersions | None) -> list[str]:
    """The versions as text; ``this`` is that of the client."""
    if server is None:
        return [this]
    controller = server.controller
    shown = "no Deployment that you may read has the controller's labels"
    if controller is not None:
        ready = f"{controller.ready} of {controller.wanted} pods ready"
        shown = f"{', '.join(controller.images)} ({ready})"
    own = (f"claimctl.io/{version}" for version in server.served_versions["claimctl.io"])
    release = f", of claimctl {server.crds_from}" if server.crds_from else ""
    claims = ", ".join(server.served_versions["resource.k8s.io"]) or "not served"
    facts = [
        ("Client", this),
        ("Kubernetes", f"{server.kubernetes}, resource.k8s.io {claims}"),
        ("CRDs", f"{', '.join(own) or 'not installed'}{release}"),
        ("Controller", shown),
        ("Lease", server.lease.message),
        ("Mode", server.dialect or "not recorded; see claimctl doctor"),
        ("Skew", server.skew.message),
    ]
    return [fact(title, value) for title, value in facts]
