"""The commands that ``claimctl --help`` lists. This module imports none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    help: str
    package: str

    @property
    def module(self) -> str:
        """The module that has the function ``command``."""
        return f"{self.package}.{self.name.replace('-', '_')}"


_FEATURES = "claimctl.commands"
_CLAIMS = f"{_FEATURES}.claims"
_DOCTOR = f"{_FEATURES}.doctor"
_DOWNGRADE = f"{_FEATURES}.downgrade"
_INSTALL = f"{_FEATURES}.install"
_DEMO = "claimctl_demo.commands"


COMMANDS = (
    Entry("get", "List claims, their state and their holders.", _CLAIMS),
    Entry("explain", "Show who holds a claim and why.", _CLAIMS),
    Entry("timeline", "Show who held a claim's devices when.", f"{_FEATURES}.timeline"),
    Entry("tree", "Show how workloads, pods, claims and devices connect.", f"{_FEATURES}.tree"),
    Entry("release", "Release a claim by hand.", _CLAIMS),
    Entry("orphans", "Find and free claims that nothing else will free.", f"{_FEATURES}.orphans"),
    Entry(
        "reschedule", "Move pods to better nodes, aware of claims.", "claimctl.reschedule.command"
    ),
    Entry("doctor", "Check the cluster and the installation.", _DOCTOR),
    Entry("downgrade-prepare", "Replace workload references by pod references.", _DOWNGRADE),
    Entry("downgrade-status", "Show the next step of a downgrade, and what blocks it.", _DOWNGRADE),
    Entry("downgrade-restore", "Let replaced workload references return.", _DOWNGRADE),
    Entry("upgrade-prepare", "Take PodGroups out of the way of an upgrade.", _DOWNGRADE),
    Entry("upgrade-status", "Show the next step of an upgrade, and what blocks it.", _DOWNGRADE),
    Entry("upgrade-restore", "Let PodGroups return after an upgrade.", _DOWNGRADE),
    Entry("uninstall-prepare", "Take claimctl out of the cluster.", f"{_FEATURES}.uninstall"),
    Entry("install", "Install claimctl in the cluster.", _INSTALL),
    Entry("manifests", "Print the manifests that install claimctl.", _INSTALL),
    Entry("controller", "Run the controller.", f"{_FEATURES}.controller"),
    Entry("embedded", "Serve an embedded cluster.", _DEMO),
    Entry("demo", "Show the whole story on an embedded cluster.", _DEMO),
    Entry("report", "Write a bundle for a bug report, without secrets.", _DOCTOR),
    Entry("version", "Print the versions of client and cluster.", _DOCTOR),
    Entry("completion", "Print a shell's completion script.", "claimctl.cli"),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}
