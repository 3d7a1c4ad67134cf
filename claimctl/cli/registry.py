"""The commands that ``claimctl --help`` lists. This module imports none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """The parts of the list of commands, in their order."""

    LOOK = "Look"
    ACT = "Act"
    OPERATE = "Operate"
    TRY = "Try it"


@dataclass(frozen=True, slots=True)
class Entry:
    """One command.

    Attributes:
        name: its words: ``get``, or ``uninstall verify``.
        module: the module that has the function ``command``.
    """

    name: str
    help: str
    module: str
    group: Group

    @property
    def page(self) -> str:
        """The name of its manual page."""
        return f"claimctl-{self.name.replace(' ', '-')}"


_FEATURES = "claimctl.commands"
_CLAIMS = f"{_FEATURES}.claims"
_DOCTOR = f"{_FEATURES}.doctor"
_DOWNGRADE = f"{_FEATURES}.downgrade"
_UNINSTALL = f"{_FEATURES}.uninstall"
_DEMO = "claimctl_demo.commands"

FAMILIES = {
    "uninstall": "Take claimctl out of the cluster.",
    "upgrade": "Take claims and PodGroups over an upgrade of Kubernetes.",
}
"""First words that are no commands of their own, and what their commands are for."""

COMMANDS = (
    Entry("get", "List claims, their state and their holders.", f"{_CLAIMS}.get", Group.LOOK),
    Entry("explain", "Show who holds a claim and why.", f"{_CLAIMS}.explain", Group.LOOK),
    Entry(
        "timeline",
        "Show who held a claim's devices when.",
        f"{_FEATURES}.timeline.timeline",
        Group.LOOK,
    ),
    Entry(
        "tree",
        "Show how workloads, pods, claims and devices connect.",
        f"{_FEATURES}.tree.tree",
        Group.LOOK,
    ),
    Entry("doctor", "Check the cluster and the installation.", f"{_DOCTOR}.doctor", Group.LOOK),
    Entry(
        "doctor orphans",
        "Find and free claims that nothing else will free.",
        f"{_FEATURES}.orphans.orphans",
        Group.LOOK,
    ),
    Entry(
        "doctor report",
        "Write a bundle for a bug report, without secrets.",
        f"{_DOCTOR}.report",
        Group.LOOK,
    ),
    Entry(
        "doctor version",
        "Print the versions of client and cluster.",
        f"{_DOCTOR}.version",
        Group.LOOK,
    ),
    Entry("reserve", "Reserve a workload's claims for it.", f"{_CLAIMS}.reserve", Group.ACT),
    Entry("release", "Release a claim by hand.", f"{_CLAIMS}.release", Group.ACT),
    Entry(
        "reschedule",
        "Move pods to better nodes, aware of claims.",
        "claimctl.reschedule.command.reschedule",
        Group.ACT,
    ),
    Entry(
        "install",
        "Install claimctl in the cluster, or print its manifests.",
        f"{_FEATURES}.install.install",
        Group.OPERATE,
    ),
    Entry(
        "install completion",
        "Print a shell's completion script.",
        "claimctl.cli.completion",
        Group.OPERATE,
    ),
    Entry(
        "uninstall prepare",
        "Remove what would block anything; pods go on.",
        f"{_UNINSTALL}.prepare",
        Group.OPERATE,
    ),
    Entry(
        "uninstall verify",
        "Show what is left of claimctl; write nothing.",
        f"{_UNINSTALL}.verify",
        Group.OPERATE,
    ),
    Entry(
        "uninstall run",
        "Prepare, stop the controller, delete claimctl.",
        f"{_UNINSTALL}.uninstall_run",
        Group.OPERATE,
    ),
    Entry(
        "upgrade prepare",
        "Take PodGroups out of the way of an upgrade.",
        f"{_DOWNGRADE}.upgrade_prepare",
        Group.OPERATE,
    ),
    Entry(
        "upgrade status",
        "Show the next step of an upgrade, and what blocks it.",
        f"{_DOWNGRADE}.upgrade_status",
        Group.OPERATE,
    ),
    Entry(
        "upgrade restore",
        "Let PodGroups return after an upgrade.",
        f"{_DOWNGRADE}.upgrade_restore",
        Group.OPERATE,
    ),
    Entry(
        "downgrade-prepare",
        "Replace workload references by pod references.",
        f"{_DOWNGRADE}.downgrade_prepare",
        Group.OPERATE,
    ),
    Entry(
        "downgrade-status",
        "Show the next step of a downgrade, and what blocks it.",
        f"{_DOWNGRADE}.downgrade_status",
        Group.OPERATE,
    ),
    Entry(
        "downgrade-restore",
        "Let replaced workload references return.",
        f"{_DOWNGRADE}.downgrade_restore",
        Group.OPERATE,
    ),
    Entry(
        "controller",
        "Run the controller.",
        f"{_FEATURES}.controller.controller",
        Group.OPERATE,
    ),
    Entry("demo", "Show the whole story on an embedded cluster.", f"{_DEMO}.demo", Group.TRY),
    Entry(
        "demo cluster",
        "Serve an embedded cluster to play with.",
        f"{_DEMO}.cluster",
        Group.TRY,
    ),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}


def parts_of(word: str) -> list[Entry]:
    """The commands of two words that begin with this one."""
    return [entry for entry in COMMANDS if entry.name.startswith(f"{word} ")]


def top_level() -> list[tuple[Group, str, str]]:
    """The first word of every command, once, with its group and one line of help."""
    words = dict.fromkeys((entry.group, entry.name.split()[0]) for entry in COMMANDS)
    return [(group, word, _line(word)) for group, word in words]


def _line(word: str) -> str:
    seconds = ", ".join(entry.name.split()[1] for entry in parts_of(word))
    if word in FAMILIES:
        return f"{FAMILIES[word].rstrip('.')}: {seconds}."
    alone = BY_NAME[word].help
    return f"{alone.rstrip('.')}; also: {seconds}." if seconds else alone


def entry_of(words: Sequence[str]) -> Entry | None:
    """The command that a command line calls: by its first two words, else by the first."""
    return BY_NAME.get(" ".join(words[:2])) or BY_NAME.get(words[0])


def meant_by(word: str) -> str:
    """A command of two words that somebody may mean by one word; '' if there is none.

    ``orphans`` is ``doctor orphans``, and ``uninstall-prepare`` is ``uninstall prepare``.
    """
    spoken = word.replace("-", " ")
    return next((name for name in BY_NAME if name == spoken or name.endswith(f" {word}")), "")
