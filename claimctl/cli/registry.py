"""The commands that ``claimctl --help`` lists. This module imports none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    help: str
    package: str = "claimctl.cli"

    @property
    def module(self) -> str:
        """The module that has the function ``command``."""
        return f"{self.package}.{self.name.replace('-', '_')}"


_DEMO = "claimctl_demo.commands"


COMMANDS = (
    Entry("get", "List claims, their state and their holders."),
    Entry("explain", "Show who holds a claim and why."),
    Entry("timeline", "Show who held a claim's devices when."),
    Entry("tree", "Show what hangs together, from workloads to nodes."),
    Entry("release", "Release a claim by hand."),
    Entry("orphans", "Find and free claims that nobody will ever free."),
    Entry("reschedule", "Move pods to better nodes, aware of claims.", "claimctl.cli.reschedule"),
    Entry("doctor", "Check the cluster and the installation."),
    Entry("downgrade-prepare", "Replace workload references by pod references."),
    Entry("downgrade-status", "Show the next step of a downgrade, and what blocks it."),
    Entry("downgrade-restore", "Let replaced workload references return."),
    Entry("uninstall-prepare", "Take claimctl out of the cluster."),
    Entry("install", "Install claimctl in the cluster."),
    Entry("manifests", "Print the manifests that install claimctl."),
    Entry("controller", "Run the controller."),
    Entry("embedded", "Serve an embedded cluster.", _DEMO),
    Entry("demo", "Show the whole story on an embedded cluster.", _DEMO),
    Entry("report", "Write a bundle for a bug report, without secrets."),
    Entry("version", "Print the versions of client and cluster."),
    Entry("completion", "Print a shell's completion script."),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}
